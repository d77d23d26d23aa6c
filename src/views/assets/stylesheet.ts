// The one stylesheet, put together from a file per component. Order: layers first, phones after what they narrow, utilities last.
import base from "./css/base.css" with { type: "text" };
import charts from "./css/charts.css" with { type: "text" };
import dialog from "./css/dialog.css" with { type: "text" };
import form from "./css/form.css" with { type: "text" };
import inbox from "./css/inbox.css" with { type: "text" };
import lease from "./css/lease.css" with { type: "text" };
import message from "./css/message.css" with { type: "text" };
import narrow from "./css/narrow.css" with { type: "text" };
import page from "./css/page.css" with { type: "text" };
import phone from "./css/phone.css" with { type: "text" };
import phoneLists from "./css/phone-lists.css" with { type: "text" };
import run from "./css/run.css" with { type: "text" };
import shell from "./css/shell.css" with { type: "text" };
import state from "./css/state.css" with { type: "text" };
import status from "./css/status.css" with { type: "text" };
import table from "./css/table.css" with { type: "text" };
import utilities from "./css/utilities.css" with { type: "text" };

const FILES = [base, status, shell, page, charts, table, inbox, run, message, lease, dialog, form, state, narrow, phone, phoneLists, utilities];

/** The stylesheet as sent: comments and indentation stay in the sources. */
export const STYLESHEET = FILES.join("\n")
  .replace(/\/\*[\s\S]*?\*\//g, "")
  .replace(/\n\s*/g, "\n")
  .trim();
