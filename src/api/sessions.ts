// Sign-in links for the dashboard. What becomes of a link is the dashboard's own business (views); here an operator makes one.
import * as sessions from "../hub/sessions.ts";
import { HubError } from "../protocol/errors.ts";
import { newSecret } from "../protocol/ids.ts";
import { ROLES, SIGNIN_PATH, SigninLink, SigninLinkBody } from "../protocol/sessions.ts";
import { iso } from "../protocol/time.ts";
import { byOf } from "./credentials.ts";
import { route } from "./route.ts";

const createSigninLink = route({
  method: "POST",
  path: "/v1/signin-links",
  operationId: "createSigninLink",
  tag: "sessions",
  summary: "Makes a link that signs one browser in to the dashboard, once and within a minute.",
  credential: "operator",
  body: SigninLinkBody,
  answers: { 201: SigninLink },
  errors: [],
  run: async (call) => {
    const { hub, body, caller, request } = call;
    if (caller.role === "project") throw new HubError("role_forbidden", "this needs the role operator");
    const { role = caller.role, project = caller.project } = body;
    if (ROLES.indexOf(role) > ROLES.indexOf(caller.role)) throw new HubError("role_forbidden", `this needs the role ${role}`);
    if (caller.project !== null && project !== caller.project) throw new HubError("role_forbidden", "this token belongs to another project");
    const secret = newSecret("kxl");
    const tokenId = caller.actor === "admin" ? null : caller.actor;
    const link = await hub.engine.write(project ?? "", (tx) =>
      sessions.createLink(tx, byOf(call.caller, call.request), { secret, role, project, tokenId }),
    );
    const base = hub.settings.publicUrl ?? new URL(request.url).origin; // the Host was checked: it is one of the hub's own names
    const url = `${base}${SIGNIN_PATH}?link=${secret}`;
    return { status: 201, body: { url, role, project: project ?? undefined, expiresAt: iso(link.expiresAt) } };
  },
});

export const sessionRoutes = [createSigninLink];
