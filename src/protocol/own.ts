// Looking something up under a name that somebody else chose: `constructor` and the like are names, too.

/** The record's own member of that name, or undefined. */
export const own = <T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
  record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
