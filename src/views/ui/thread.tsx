// A conversation: posts in order, each with a head of ours and a body that is somebody else's.
/** @jsxImportSource #jsx */
import type { Child } from "../jsx/jsx-runtime.ts";

export const Thread = ({ children }: { children: Child }) => <div class="thread">{children}</div>;

/** One message: who (`Who`), to whom, when, and its body (`Untrusted`, or a Skeleton while it is being written). */
export const Post = ({ id, who, to, when, children }: { id?: string; who: Child; to?: Child; when?: Child; children: Child }) => (
  <article class="post" id={id}>
    <div class="post__head">
      {who}
      {to && <span class="quiet">{to}</span>}
      {when}
    </div>
    {children}
  </article>
);
