// The hub's own reading of memory files, for `kxm memory sync`: loaded only by that command.
export { memoryItems } from "../hub/context/memory.ts";
