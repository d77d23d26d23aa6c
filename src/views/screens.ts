// Every screen and fragment of the dashboard, in one list. What is not here does not exist.
import * as agents from "./agents.tsx";
import * as compose from "./compose.tsx";
import { navFragment } from "./frame.tsx";
import * as leaseHistory from "./lease-history.tsx";
import * as leases from "./leases.tsx";
import * as message from "./message.tsx";
import * as messages from "./messages.tsx";
import { type Screen, screen } from "./screen.ts";

const nav = screen({ method: "GET", path: "/ui/nav", role: "viewer", run: navFragment });

export const SCREENS: readonly Screen[] = [
  nav,
  ...agents.screens,
  ...messages.screens,
  ...message.screens,
  ...compose.screens,
  ...leases.screens,
  ...leaseHistory.screens,
];
