// What a program gets to see of this machine's environment: a short list of harmless names, what its row and its project file name, and nothing else.

/** Names every program gets when they are set. */
const ALWAYS = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"],
  ...["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"],
  ...["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"],
  ...["SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "COMSPEC"],
];

/**
 * The environment of one program.
 * @param source this process's environment
 * @param names what the harness row and the project file allow beyond the usual; KXM's own settings never pass, whoever names them
 * @param fixed values set for this attempt, such as the run id
 */
export function environmentFor(
  source: Record<string, string | undefined>,
  names: readonly string[],
  fixed: Record<string, string>,
): Record<string, string> {
  const passed: Record<string, string> = { TERM: "dumb", NO_COLOR: "1" };
  const localised = Object.keys(source).filter((name) => name.startsWith("LC_"));
  for (const name of [...ALWAYS, ...localised, ...names]) {
    const value = source[name];
    if (value !== undefined && !name.startsWith("KXM_")) passed[name] = value;
  }
  return { ...passed, ...fixed };
}
