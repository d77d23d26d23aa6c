// Work that is done when it is first needed: a program that only shows its version must not compile every schema.

/** The value of `make`, made by the first call. */
export function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
