// The page of all components, for those who develop the dashboard. It is served only when the composition root adds it.
/** @jsxImportSource #jsx */
import { cookieValues } from "./cookies.ts";
import { screen } from "./screen.ts";
import { StoriesPage } from "./stories.tsx";
import { THEME_COOKIE, themeOf } from "./ui/layout.tsx";

/** `/stories`, or one of them with `?only=`. */
export const storiesScreen = screen({
  method: "GET",
  path: "/stories",
  role: "viewer",
  run: ({ now, request, url }) => (
    <StoriesPage now={now} theme={themeOf(cookieValues(request, THEME_COOKIE)[0])} only={url.searchParams.get("only") ?? undefined} />
  ),
});
