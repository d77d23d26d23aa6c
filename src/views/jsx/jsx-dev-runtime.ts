// The compiler asks for this module in development. It must be the same module: a second `Html` class would not be trusted.
export * from "./jsx-runtime.ts";
