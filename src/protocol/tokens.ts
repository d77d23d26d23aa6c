// Tokens on the wire: made by an admin, shown once, revocable.
import { type Static, Type } from "@sinclair/typebox";
import { oneOf, optionalInteger, optionalText, text } from "./fields.ts";

/** project: an agent's or Runtime's place in one project · viewer reads metadata · operator acts · admin administers. */
export const TOKEN_SCOPES = ["project", "viewer", "operator", "admin"] as const;
const TOKEN_AGE_MS_MIN = 60_000;
const TOKEN_AGE_MS_MAX = 366 * 86_400_000;

/** One token, without its secret. */
export const Token = Type.Object({
  id: Type.String(),
  name: Type.String(),
  scope: oneOf(TOKEN_SCOPES),
  project: Type.Optional(Type.String({ description: "The only project it opens; absent: all of them." })),
  agent: Type.Optional(Type.String({ description: "The only agent it speaks for; absent: any of its project." })),
  prefix: Type.String({ description: "First characters of the secret, to tell tokens apart." }),
  createdAt: Type.String(),
  createdBy: Type.String(),
  lastUsedAt: Type.Optional(Type.String()),
  expiresAt: Type.Optional(Type.String()),
  revokedAt: Type.Optional(Type.String()),
  revokedBy: Type.Optional(Type.String()),
});
export type Token = Static<typeof Token>;

/** Body of POST /v1/tokens. */
export const CreateTokenBody = Type.Object({
  name: text(64, { description: "What it is for." }),
  scope: oneOf(TOKEN_SCOPES, { description: "What it may do." }),
  project: optionalText(128, { description: "The only project it opens. Required for scope project." }),
  agent: optionalText(64, { description: "The only agent it speaks for, by name. For scope project; it opens no Runtime routes." }),
  expiresInMs: optionalInteger({ min: TOKEN_AGE_MS_MIN, max: TOKEN_AGE_MS_MAX }, { description: "It ends by itself after this many milliseconds." }),
});
/** Its answer: the only time the secret is shown. */
export const CreateTokenAnswer = Type.Object({ token: Token, secret: Type.String({ description: "Shown once; the hub keeps its SHA-256." }) });
export const TokenAnswer = Type.Object({ token: Token });
export const TokensAnswer = Type.Object({ tokens: Type.Array(Token) });
export const TokenParams = Type.Object({ id: Type.String({ description: "Token id." }) });
