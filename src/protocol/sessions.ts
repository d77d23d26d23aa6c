// Signing in to the dashboard, on the wire: an operator makes a link that works once.
import { type Static, Type } from "@sinclair/typebox";
import { oneOf, optionalText } from "./fields.ts";

/** What a person may do on the dashboard: read, act, administer. */
export const ROLES = ["viewer", "operator", "admin"] as const;
export type RoleWord = (typeof ROLES)[number];

/** Where the dashboard takes a link's secret, as `?link=`. */
export const SIGNIN_PATH = "/signin";

/** Body of POST /v1/signin-links. */
export const SigninLinkBody = Type.Object({
  role: Type.Optional(oneOf(ROLES, { description: "What the session may do; at most what the caller may. Absent: as much as the caller." })),
  project: optionalText(128, { description: "The only project the session sees." }),
});
/** Its answer. */
export const SigninLink = Type.Object({
  url: Type.String({ description: "Open it in a browser. Works once." }),
  role: oneOf(ROLES),
  project: Type.Optional(Type.String()),
  expiresAt: Type.String(),
});
export type SigninLink = Static<typeof SigninLink>;
