import { Assembly, type GatewaySnapshot, processOptions } from "../assembly.js";
import { createOcrReader, type OcrHealthOptions, type OcrReader } from "../clients/ocr.js";
import { loadOcrEnv, type OcrOverrides, processEnv } from "../config/env.js";
import { loadOcrFile } from "../config/file.js";
import type { OcrOptions } from "../config/options.js";
import { resolveScope } from "../config/resolve.js";
import type { OcrCallOptions, OcrHealth, OcrInput, OcrLayoutResult, OcrTextResult } from "../domain/ocr.js";
import { type FromConfigOptions, type FromEnvOptions, settingsOf } from "../gateway.js";
import type { Governor } from "../ports/governor.js";
import type { OcrTransport } from "../ports/transport.js";
import { createOcrTransport } from "../transports/ocr/transports.js";
import { profileFor, profiles } from "../transports/openai/profiles.js";

/**
 * A governed client that reads pictures and documents: limits, retries, failover and telemetry as for chat (spec 06).
 * Each source says by `transport` which server it is: monkey-ocr, mineru, paddle, mistral, or vlm for a chat model.
 *
 * Constructing connects to nothing and throws ConfigError with every problem at once.
 */
export class OcrClient {
  readonly scope: string;
  /** Give it to another client of this scope to share limits, breakers and queue. */
  readonly governor: Governor;
  readonly #assembly: Assembly<OcrTransport>;
  readonly #reader: OcrReader;

  constructor(options: OcrOptions) {
    const resolved = resolveScope(options, { profiles, profileFor, client: "ocr" });
    const assembly = new Assembly<OcrTransport>(options, resolved, createOcrTransport);
    this.scope = resolved.config.scope;
    this.governor = assembly.governor;
    this.#assembly = assembly;
    this.#reader = createOcrReader(assembly.environment, assembly.transport, assembly, resolved.ocr!);
  }

  /** Reads `{SCOPE}__…` and the process-wide `PGW_…` keys, like `GatewayClient.fromEnv`. Throws ConfigError. */
  static fromEnv(
    scope: string,
    { env = processEnv(), overrides, ...source }: FromEnvOptions<OcrOverrides> = {},
  ): OcrClient {
    const loaded = loadOcrEnv(scope, env, settingsOf(overrides, source));
    return new OcrClient({ ...processOptions(loaded.process), ...loaded.options });
  }

  /** Reads one scope of a YAML or JSON file, like `GatewayClient.fromConfig`. Throws ConfigError. */
  static fromConfig(
    path: string,
    scope: string,
    { env = processEnv(), overrides, ...source }: FromConfigOptions<OcrOverrides> = {},
  ): OcrClient {
    const loaded = loadOcrFile(path, scope, env, settingsOf(overrides, source));
    return new OcrClient({ ...processOptions(loaded.process), ...loaded.options });
  }

  /** Models of the enabled sources. */
  get models(): readonly string[] {
    return this.#assembly.models;
  }

  /**
   * The text of a picture or document: PNG, JPEG, WebP, TIFF or PDF, told by its content. The bytes are copied; a path is
   * read when the call begins.
   *
   * Rejects with RequestRejectedError (no picture, too large, `unsupported_modality` when no source can read it),
   * ResultInvalidError when a healthy server's answer can't be used, a GatewayUnavailableError ("try later"),
   * SourceNotConfiguredError, or exactly the reason of the caller's signal.
   */
  recognizeText(image: OcrInput, options?: OcrCallOptions): Promise<OcrTextResult> {
    return this.#reader.recognizeText(image, options);
  }

  /**
   * What stands where: the elements of each page with their boxes, normalised to 0…1 of the page with the origin top left
   * (`toPixels` turns them into pixels). A box that can't be used leaves its element out and is counted in
   * `droppedElements`. Rejects like `recognizeText`.
   */
  parseLayout(image: OcrInput, options?: OcrCallOptions): Promise<OcrLayoutResult> {
    return this.#reader.parseLayout(image, options);
  }

  /** How each source is, by what it tells without work; never rejects for a source, and takes no permit. */
  checkHealth(options?: OcrHealthOptions): Promise<Readonly<Record<string, OcrHealth>>> {
    return this.#reader.checkHealth(options);
  }

  /** What is used, what is broken and who waits, right now; see `GatewayClient.snapshot`. */
  snapshot(): GatewaySnapshot | Promise<GatewaySnapshot> {
    return this.#assembly.snapshot();
  }

  /** Permits that this process holds; see `GatewayClient.leases`. */
  leases(): GatewaySnapshot["leases"] {
    return this.#assembly.leases();
  }

  /** Waits for the calls in flight, writes the telemetry and closes the sockets. New calls are refused. */
  close(): Promise<void> {
    return this.#assembly.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
