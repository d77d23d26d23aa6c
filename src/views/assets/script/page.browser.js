// What a hand does on a page: theme, copying, dialogs, picking rows, lists of options, keys.
const THEMES = ["auto", "light", "dark"];
let goingAt = -Infinity;
const halt = () => root.dataset.events && pause();

const clicks = {
  "[data-open]": (button, event) => {
    const dialog = document.getElementById(button.dataset.open);
    if (dialog) {
      event.preventDefault();
      find(".told", dialog)?.replaceChildren(); // what failed when it was open before
      dialog.showModal();
    }
  },
  "[data-close]": (button) => button.closest("dialog").close(),
  "[data-dismiss]": (button) => button.closest(".flash").remove(),
  "[data-live]": halt,
  "[data-insert]": insert,
  "[data-theme-next]": () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % 3];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    // biome-ignore lint/suspicious/noDocumentCookie: the server writes the theme into the page before it is painted
    document.cookie = `kxm_theme=${next};path=/;max-age=31536000;samesite=strict`;
    say(`Theme: ${next}`);
  },
  "[data-copy]": async (button) => {
    const label = find("span", button) ?? button;
    const before = (button.dataset.label ??= label.textContent);
    label.textContent = await navigator.clipboard.writeText(button.dataset.copy).then(
      () => "Copied",
      () => "Press Ctrl+C",
    );
    say(label.textContent);
    setTimeout(() => {
      label.textContent = before;
    }, 1600);
  },
};
listen("click", (event) => {
  for (const menu of all("details[data-menu][open]")) if (!menu.contains(event.target)) menu.open = false;
  for (const [selector, act] of Object.entries(clicks)) {
    const hit = event.target.closest(selector);
    if (hit) act(hit, event);
  }
});

// Picked rows: the bar shows itself by CSS, here it only counts.
function count() {
  for (const bar of all("[data-bulk]"))
    find("[data-count]", bar).textContent = `${all(`[data-pick][form="${bar.getAttribute("id")}"]:checked`).length} selected`;
}
listen("change", ({ target }) => {
  if (target.matches("[data-pick-all]")) for (const box of all("[data-pick]", target.closest("table"))) box.checked = target.checked;
  count();
});
listen(
  "htmx:after:request",
  ({ detail: { ctx } }) => ctx.response.status < 400 && ctx.sourceElement.matches("form") && ctx.sourceElement.closest("dialog")?.close(),
);

// A box with a list of options: the palette and the completions of a filter.
const listOf = (box) => find(`#${box.getAttribute("aria-controls")}`);
const optionsOf = (box) => all("[role=option]:not([hidden])", listOf(box));
function choose(box, option) {
  for (const other of all("[role=option]", listOf(box))) other.ariaSelected = String(other === option);
  box.ariaExpanded = String(optionsOf(box).length > 0);
  box.setAttribute("aria-activedescendant", option?.id ?? "");
  option?.scrollIntoView({ block: "nearest" });
}
function insert(option) {
  const box = find(`[aria-controls="${option.parentElement.id}"]`);
  box.value = box.value.replace(/\S*$/, option.dataset.insert);
  box.focus();
  box.dispatchEvent(new Event("input", { bubbles: true }));
}
listen("input", ({ target: box }) => {
  if (!box.matches("[role=combobox]") || !("filtered" in listOf(box).dataset)) return;
  for (const option of all("[role=option]", listOf(box))) option.hidden = !option.textContent.toLowerCase().includes(box.value.trim().toLowerCase());
  choose(box, optionsOf(box)[0]);
});
for (const type of ["input", "focusin"])
  listen(type, ({ target }) => {
    target.shut = false;
  });
// A palette opens its first line on Enter; a filter searches for what is typed until a completion is chosen.
listen("htmx:after:swap", ({ detail: { ctx } }) => {
  const box = ctx.sourceElement;
  if (!box.matches("[role=combobox]")) return;
  if (box.shut) listOf(box).replaceChildren(); // asked for before Escape, answered after it
  choose(box, find("a[role=option]", listOf(box)));
});
function inBox(event) {
  const { key, target: box } = event;
  const options = optionsOf(box);
  const chosen = options.find((option) => option.ariaSelected === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (options.length === 0) return;
  if (step) choose(box, options.at(chosen ? (options.indexOf(chosen) + step) % options.length : Math.min(0, step)));
  else if (key === "Enter" && chosen) chosen.click();
  else if (key === "Tab" && !options[0].href && box.value.trim()) (chosen ?? options[0]).click();
  else if (key === "Escape" && !options[0].href) {
    box.shut = true;
    listOf(box).replaceChildren();
    choose(box);
  } else return;
  event.preventDefault();
}

const currentRow = () => find("[data-row][aria-current=true]");
function move(step) {
  const rows = all("[data-row]").filter((row) => row.checkVisibility());
  const at = rows.indexOf(currentRow());
  currentRow()?.removeAttribute("aria-current");
  const next = rows[at + step] ?? rows[Math.max(0, at)];
  if (!next) return;
  next.ariaCurrent = "true";
  next.scrollIntoView({ block: "nearest" });
  find("a, button", next)?.focus({ preventScroll: true });
}
/** Presses the button that carries a key: the current row's, or the only one on the page. Returns whether there was one. */
function press(key) {
  const buttons = all(`[data-key="${CSS.escape(key)}"]`, currentRow() ?? find("#main")).filter(
    (button) => button.checkVisibility() && !button.disabled,
  );
  if (buttons.length === 1) buttons[0].click();
  return buttons.length === 1;
}
const keys = {
  "?": () => find("#keysheet")?.showModal(),
  "/": () => {
    const box = find("#main [data-find]");
    if (box) box.focus();
    else find("[data-go=f]").click();
  },
  p: halt,
  j: () => move(1),
  k: () => move(-1),
  x: () => find("[data-row][aria-current=true] [data-pick]")?.click(),
  g: () => {
    goingAt = elapsed();
  },
};
listen("keydown", (event) => {
  const { key, target } = event;
  const modified = event.ctrlKey || event.metaKey;
  if (modified && key.toLowerCase() === "k" && find("#palette")) {
    event.preventDefault();
    if (!find("dialog[open]")) find("#palette").showModal();
  } else if (modified && key === "Enter" && target.matches("textarea")) target.form?.requestSubmit();
  else if (target.matches("[role=combobox]")) inBox(event);
  if (modified || event.altKey || find("dialog[open]") || target.closest("input:not([type=checkbox], [type=radio]), textarea, select")) return;
  const going = elapsed() - goingAt < 1200;
  goingAt = -Infinity;
  const place = going && find(`[data-go="${CSS.escape(key)}"]`);
  if (place) place.click();
  else if (keys[key]) keys[key]();
  // A key that opened a dialog is not typed into its field.
  const pressed = !place && !keys[key] && key.length === 1 && press(key);
  if (key === "/" || place || pressed) event.preventDefault();
});
