import { givenValue } from "../domain/given-value.js";
import type { ConfigProblem } from "../errors.js";
import { OPEN_TABLE } from "./columns.js";

/**
 * What a table may be called, for whoever writes it and for whoever reads it back: longer names leave no room for those
 * of its indexes, which PostgreSQL cuts at 63.
 */
const NAME = "[A-Za-z_][A-Za-z0-9_]{0,47}";
const PLAIN = new RegExp(`^${NAME}$`);
const WITH_SCHEMA = new RegExp(`^(?:${NAME}\\.)?${NAME}$`);

export const TABLE_NAME_RULE = "letters, digits and _ (at most 48), no digit first";

export function isTableName(value: unknown, { schema }: { readonly schema: boolean }): value is string {
  if (typeof value !== "string" || !(schema ? WITH_SCHEMA : PLAIN).test(value)) return false;
  return value.split(".").at(-1)?.toLowerCase() !== OPEN_TABLE;
}

/** What is wrong with the option `key` of a recorder. */
export function tableProblems(key: string, value: unknown, form: { readonly schema: boolean }): ConfigProblem[] {
  if (isTableName(value, form)) return [];
  const where = form.schema ? ", with or without a schema" : "";
  const remedy = `Use ${TABLE_NAME_RULE}${where}; ${OPEN_TABLE} is the journal's`;
  return [{ key, value: givenValue(value), problem: "is no table name", remedy }];
}
