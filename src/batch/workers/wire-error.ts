import {
  AllSourcesExhausted,
  CircuitOpenError,
  ConfigError,
  GatewayUnavailableError,
  GovernanceBackendError,
  PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  SourceNotConfiguredError,
  TransientError,
} from "../../errors.js";

/** An error on its way between two processes: what a batch judges and writes down, no stack. */
export interface WireError {
  readonly name: string;
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly cause?: WireError;
}

const CLASSES: ReadonlyMap<string, { readonly prototype: object }> = new Map<string, { readonly prototype: object }>(
  Object.entries({
    AllSourcesExhausted,
    CircuitOpenError,
    ConfigError,
    GatewayUnavailableError,
    GovernanceBackendError,
    PolyGatewayError,
    RequestRejectedError,
    ResultInvalidError,
    SourceDeadError,
    SourceNotConfiguredError,
    TransientError,
  }),
);

/** Texts of a model that may be as large as an answer, and that no line of OUT holds. */
const LEFT_OUT = new Set(["partial", "rawText"]);

export function toWire(error: unknown): WireError {
  const wire = describe(error);
  try {
    JSON.stringify(wire);
    return wire;
  } catch {
    // A field that JSON can't hold must not cost the line its end.
    return { name: wire.name, message: wire.message };
  }
}

function describe(error: unknown): WireError {
  if (!(error instanceof Error)) return { name: typeof error, message: String(error) };
  const plain = { name: error.name, message: error.message };
  if (!PolyGatewayError.isInstance(error)) return plain;
  const fields = Object.entries(error).filter(([key]) => !LEFT_OUT.has(key));
  const cause = error.cause instanceof Error ? { cause: describe(error.cause) } : {};
  return { ...plain, fields: Object.fromEntries(fields), ...cause };
}

/** The error as it was, so that `isInstance`, `code` and the rest answer the same. */
export function fromWire({ name, message, fields, cause }: WireError): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause: fromWire(cause) });
  const known = CLASSES.get(name);
  if (known === undefined) error.name = name;
  else Object.setPrototypeOf(error, known.prototype);
  if (known === ResultInvalidError) Object.assign(error, { rawText: "" });
  return Object.assign(error, fields);
}
