// Every screen and fragment of the dashboard, in one list. What is not here does not exist.
import { navFragment } from "./frame.tsx";
import * as leaseHistory from "./lease-history.tsx";
import * as leases from "./leases.tsx";
import { type Screen, screen } from "./screen.ts";

const nav = screen({ method: "GET", path: "/ui/nav", role: "viewer", run: navFragment });

export const SCREENS: readonly Screen[] = [nav, ...leases.screens, ...leaseHistory.screens];
