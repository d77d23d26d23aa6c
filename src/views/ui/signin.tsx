// Signing in: the one-time link first, a token where one is needed.
/** @jsxImportSource #jsx */
import { Command, Notice } from "./feedback.tsx";
import { TextField } from "./form.tsx";
import { Wordmark } from "./icon.tsx";
import type { Tone } from "./status.tsx";

type SignInProps = {
  /** Where the token is posted. */
  action: string;
  /** Why the reader is here again: the link was used, the session ended. */
  notice?: { tone: Tone; title: string; text: string };
  /** Host and port of this hub. */
  hub: string;
  /** What makes a link when it is typed there. */
  command?: string;
  /** The path the reader comes back to. */
  back?: string;
  /** Hours after which an unused session ends. */
  idleHours: number;
};

/** The card on the sign-in page. Goes into SoloLayout. */
export const SignIn = ({ action, notice, hub, command = "kxm open", back, idleHours }: SignInProps) => (
  <>
    <Wordmark />
    <div>
      <h1>Sign in to this hub</h1>
      <p>On the machine that runs it, ask for a link. It works once, for 60 seconds.</p>
    </div>
    {notice && (
      <Notice tone={notice.tone} title={notice.title}>
        {notice.text}
      </Notice>
    )}
    <Command text={command} />
    <div class="or">or with a token</div>
    <form class="form" method="post" action={action}>
      {back && <input type="hidden" name="back" value={back} />}
      <TextField id="token" name="token" label="Token" type="password" autocomplete="current-password" placeholder="kxm_…" required />
      <button class="btn btn--primary" type="submit">
        Sign in
      </button>
    </form>
    <p class="section__note">
      hub {hub}
      {back && (
        <>
          {" "}
          · you come back to <code>{back}</code>
        </>
      )}{" "}
      · sessions end after {idleHours} hours without use
    </p>
  </>
);
