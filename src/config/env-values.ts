import { createRequire } from "node:module";
import type { ZodType } from "zod";
import type { Field, FieldKind } from "./field.js";
import { readThinking } from "./thinking-value.js";
import type { Checked } from "./values.js";

/**
 * Environment text → the value a constructor would be given. Only the form is judged here; ranges and rules are those
 * of `checkValue`. zod is loaded at the first use: a program that configures itself in code never pays for it.
 */
export function parseText(field: Field, text: string): Checked {
  if (text.trim() === "" && !field.mayBeEmpty) return { problem: "is empty" };
  // A key keeps its spaces, so that they are reported rather than guessed away.
  if (field.kind === "secret" || field.secret)
    return field.kind === "headers" ? parsed("headers", text) : { value: text };
  return parsed(field.kind, field.mayBeEmpty ? text : text.trim());
}

let schemas: Partial<Record<FieldKind, ZodType>> | undefined;

function parsed(kind: FieldKind, text: string): Checked {
  schemas ??= makeSchemas();
  const schema = schemas[kind];
  if (schema === undefined) return { value: text };
  const result = schema.safeParse(text);
  return result.success ? { value: result.data } : { problem: result.error.issues[0]?.message ?? "can't be read" };
}

const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?$/i;
const ON = ["on", "true", "1", "yes"];
const OFF = ["off", "false", "0", "no"];

function makeSchemas(): Partial<Record<FieldKind, ZodType>> {
  const { z } = createRequire(import.meta.url)("zod") as typeof import("zod");
  const decimal = z.string().regex(DECIMAL, "is not a number").transform(Number);
  const flag = z.stringbool({ truthy: ON, falsy: OFF, error: "is neither on nor off" });
  const object = z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue({ code: "custom", message: "is not valid JSON" });
        return z.NEVER;
      }
    })
    .refine((value) => typeof value === "object" && value !== null && !Array.isArray(value), "is not a JSON object");
  const list = z.string().transform((text) => {
    const entries = text.split(",").map((entry) => entry.trim());
    return entries.length === 1 && entries[0] === "none" ? [] : entries;
  });
  const transient400 = z.string().transform((text, context) => {
    const pattern = /^\/(.+)\/([a-z]*)$/s.exec(text);
    try {
      return pattern ? new RegExp(pattern[1] ?? "", pattern[2]) : text;
    } catch {
      context.addIssue({ code: "custom", message: "is not a valid pattern" });
      return z.NEVER;
    }
  });
  const profile = z.string().transform((text, context) => {
    if (!text.startsWith("{")) return text;
    try {
      return JSON.parse(text) as unknown;
    } catch {
      context.addIssue({ code: "custom", message: "is not valid JSON" });
      return z.NEVER;
    }
  });
  const thinking = z.string().transform((text, context) => {
    try {
      return readThinking(text);
    } catch {
      context.addIssue({ code: "custom", message: "is not valid JSON" });
      return z.NEVER;
    }
  });
  const seconds = decimal.transform((value) => Math.round(value * 1_000_000) / 1_000);
  const plain = { duration: seconds, number: decimal, integer: decimal, flag, list, transient400 };
  return { ...plain, object, headers: object, profile, thinking };
}
