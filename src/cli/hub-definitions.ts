// The hub's own check of workflow definitions, for `kxm workflow validate`: loaded only by that command.
export { parseDefinitions } from "../hub/workflows/definitions.ts";
