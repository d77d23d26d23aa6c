// The version of this build, as package.json has it (a test compares them). Programs show it, hubs and Runtimes report it.
export const VERSION = "0.1.0";
