// Every environment variable of the programs, once: the reference and --help are made from it, and a test finds those that are not here.

/** One variable. `default` says in words what holds without it. */
export interface Variable {
  name: `KXM_${string}`;
  /** Which program reads it; `steps` is what the Runtime gives to the commands it starts. */
  of: "hub" | "commands" | "runtime" | "steps";
  default: string;
  meaning: string;
}

export const VARIABLES: readonly Variable[] = [
  {
    of: "hub",
    name: "KXM_HOST",
    default: "127.0.0.1",
    meaning:
      "Name or address the hub listens on. 127.0.0.1 and localhost listen on ::1 as well. Any other than a loopback name needs KXM_AUTH_TOKEN.",
  },
  { of: "hub", name: "KXM_PORT", default: "7331", meaning: "Port the hub listens on. 0 takes any free one." },
  {
    of: "hub",
    name: "KXM_AUTH_TOKEN",
    default: "none",
    meaning:
      "Admin token. Agents of every project without a token of its own must show it. Required when the hub listens beyond this machine, and best of 16 characters or more: the hub warns of shorter ones.",
  },
  {
    of: "hub",
    name: "KXM_PROJECT_TOKENS",
    default: "none",
    meaning: "JSON object of project → token. A project named here accepts only its own token, best of 16 characters or more.",
  },
  {
    of: "hub",
    name: "KXM_PUBLIC_URL",
    default: "none",
    meaning: "Address people use when a proxy with TLS stands in front, such as https://kxm.example.com.",
  },
  { of: "hub", name: "KXM_DATA_PATH", default: "<state>/kxm.db", meaning: "File of the SQLite store. `:memory:` keeps nothing beyond the process." },
  {
    of: "hub",
    name: "KXM_DATABASE_URL",
    default: "none",
    meaning: "A PostgreSQL database (postgres://…) instead of the file; several hubs may share it.",
  },
  { of: "hub", name: "KXM_WORKSPACE_DIR", default: ".kxm", meaning: "Folder of this workspace. The other folders lie in it unless they are set." },
  {
    of: "hub",
    name: "KXM_STATE_DIR",
    default: "<workspace>/state",
    meaning: "Store, operator token and the note of the running hub. Only its owner may read it.",
  },
  { of: "hub", name: "KXM_LOGS_DIR", default: "<workspace>/logs", meaning: "Log files. Only its owner may read it." },
  { of: "hub", name: "KXM_ASSETS_DIR", default: "<workspace>/assets", meaning: "What the hub writes for people, such as retrospectives." },
  { of: "hub", name: "KXM_CONFIG_DIR", default: "<workspace>/config", meaning: "Files that people write for the hub." },
  {
    of: "hub",
    name: "KXM_WEBHOOK_WORKFLOWS",
    default: "none",
    meaning: "Workflow definitions as a JSON array. Not together with KXM_WEBHOOK_WORKFLOWS_FILE.",
  },
  {
    of: "hub",
    name: "KXM_WEBHOOK_WORKFLOWS_FILE",
    default: "none",
    meaning: "File with the workflow definitions. Read again on SIGHUP; a file with problems keeps the old set.",
  },
  {
    of: "hub",
    name: "KXM_LOG_PATH",
    default: "<logs>/kxm-hub.jsonl",
    meaning: "The hub's log, one JSON object a line, in two files of at most 16 MiB. Never holds message bodies or tokens.",
  },
  {
    of: "hub",
    name: "KXM_MESSAGE_TTL_MS",
    default: "86400000",
    meaning: "How long a message waits for its reply unless its sender says otherwise. Milliseconds, at least 1000.",
  },
  { of: "hub", name: "KXM_MESSAGE_RETENTION_MS", default: "604800000", meaning: "How long an ended message is kept. Milliseconds, at least 1000." },
  {
    of: "hub",
    name: "KXM_MCP_ALIASES",
    default: "none",
    meaning: "`agent-mail` also offers the eight tools that users of MCP Agent Mail know by name, mapped onto messages and leases.",
  },
  {
    of: "hub",
    name: "KXM_STORIES",
    default: "none",
    meaning: "1 also serves /stories, a page of all components of the dashboard, for those who work on it.",
  },
  { of: "hub", name: "KXM_RATE_LIMIT_MAX", default: "600", meaning: "Requests an agent or address may make in one window. At least 1." },
  { of: "hub", name: "KXM_RATE_LIMIT_WINDOW_MS", default: "60000", meaning: "Length of that window. Milliseconds, at least 100." },
  {
    of: "commands",
    name: "KXM_URL",
    default: "the hub of this workspace",
    meaning: "Address of the hub that commands talk to, such as http://127.0.0.1:7331. Where neither is, the port KXM_PORT of this machine.",
  },
  {
    of: "commands",
    name: "KXM_TOKEN",
    default: "this machine's operator token",
    meaning: "Bearer token that commands show: a project's, or one of `kxm token create`.",
  },
  { of: "commands", name: "KXM_PROJECT", default: "name of the workspace's folder", meaning: "Project that commands are about." },
  { of: "commands", name: "KXM_AGENT_NAME", default: "none", meaning: "Name under which `kxm peer` and `kxm lease` speak, instead of --as." },
  { of: "commands", name: "KXM_ACTOR", default: "the user's name", meaning: "Who acts, in the record of decisions about runs." },
  {
    of: "runtime",
    name: "KXM_STATE_HOME",
    default: "the system's place for state, such as ~/.local/state/kxm",
    meaning: "Where this user's Runtime and agents keep what they know between commands. An absolute path.",
  },
  {
    of: "runtime",
    name: "KXM_RUNTIME_SYNC_INTERVAL_MS",
    default: "10000",
    meaning: "How often the Runtime reports to the hub without a new event. Milliseconds, 250 to 60000.",
  },
  {
    of: "commands",
    name: "KXM_WEBHOOK_SECRET",
    default: "none",
    meaning: "Shared secret that `kxm workflow start`, `signal` and `kxm watch` sign with; another variable with --secret-env.",
  },
  { of: "steps", name: "KXM_MESSAGE_ID", default: "only in a worker's turn", meaning: "The request that the turn answers." },
  { of: "steps", name: "KXM_RUN_ID", default: "set by the Runtime", meaning: "The run that the command belongs to." },
  { of: "steps", name: "KXM_STEP_ID", default: "set by the Runtime", meaning: "The step that the command carries out." },
  { of: "steps", name: "KXM_ATTEMPT_ID", default: "set by the Runtime", meaning: "The attempt; another one after a retry." },
  { of: "steps", name: "KXM_LEASE_RESOURCE", default: "only with a lease", meaning: "The resource whose lease is held while the command runs." },
  { of: "steps", name: "KXM_FENCING_TOKEN", default: "only with a lease", meaning: "Its fencing token: show it to whatever refuses a late holder." },
];

/** Variables of the repository's own tests and scripts: not for users. */
export const TEST_VARIABLES = /^KXM_(TEST_\w*|FAULTS|SOAK|CLIENTS)$/;
