interface FileIdentity<Id extends number | bigint> {
  readonly dev: Id;
  readonly ino: Id;
}

/** Whether two names, or a name and an open file, are one file on the disk. */
export function isSameFile<Id extends number | bigint>(one: FileIdentity<Id>, other: FileIdentity<Id>): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}
