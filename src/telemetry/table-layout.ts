export interface Column {
  readonly name: string;
  readonly type: string;
}

/** How the two tables of a telemetry database are made; handed to the writing thread, which knows no record type. */
export interface TableLayout {
  readonly table: string;
  /** In the order of the insert. */
  readonly columns: readonly Column[];
  /** How many of them stand before `created_at`. */
  readonly createdAtIndex: number;
  readonly openTable: string;
  readonly openColumns: readonly Column[];
}
