import { isDecodable, unescaped } from "./percent-escapes.js";

/** `postgres://`, `postgresql://`, and SQLAlchemy's forms that name a driver. */
const SCHEME = /^postgres(?:ql)?(?:\+[a-z0-9_]+)?:\/\//i;

/** An address of a PostgreSQL database, as far as its beginning tells. */
export function isPostgresDsn(text: string): boolean {
  return SCHEME.test(text);
}

/** What is wrong with an address, in words that hold nothing of it; null = it can be used. */
export function dsnProblem(dsn: unknown): string | null {
  if (typeof dsn !== "string" || dsn.trim() === "") return "is empty";
  if (!isPostgresDsn(dsn)) return "does not begin with postgres:// or postgresql://";
  const normal = normalDsn(dsn);
  if (URL.canParse(normal)) return escapeProblem(normal);
  if (hasHighPort(normal)) return `names a port above ${HIGHEST_PORT}`;
  return `is no address: a port is a number up to ${HIGHEST_PORT}, and special characters in a password are written as %40 and so on`;
}

/** The driver would take such a % for itself, or fail with words of its own. */
function escapeProblem(normal: string): string | null {
  const { username, password, pathname } = new URL(normal);
  const part = Object.entries({ user: username, password, database: pathname }).find(([, text]) => !isDecodable(text));
  return part === undefined ? null : `has a % in its ${part[0]} that begins no escape: % itself is written as %25`;
}

const HIGHEST_PORT = 65_535;

/** Alone in being wrong: with a lower one it would be an address. */
function hasHighPort(normal: string): boolean {
  const [, before, port, after] = /^(postgres:\/\/[^/?#]*):(\d+)([/?#].*)?$/s.exec(normal) ?? [];
  return Number(port) > HIGHEST_PORT && URL.canParse(`${before}:1${after ?? ""}`);
}

/** As the driver takes it. */
export function normalDsn(dsn: string): string {
  // asyncpg says `ssl=require` where libpq and pg say `sslmode=require`.
  return dsn
    .trim()
    .replace(SCHEME, "postgres://")
    .replace(/([?&])ssl=(?=[a-z-]*(?:require|verify|prefer|disable))/, "$1sslmode=");
}

/**
 * As the driver is given it. It takes these three modes of TLS for verify-full, and says so on stderr in many lines; given
 * verify-full it says nothing.
 */
export function driverDsn(dsn: string): string {
  const normal = normalDsn(dsn);
  if (/[?&]uselibpqcompat=/.test(normal)) return normal;
  return normal.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=[&#]|$)/, "$1verify-full");
}

/** How the database is named to people: never its password, nor the parameters, which may hold one. */
export function shownDsn(dsn: string): string {
  const normal = normalDsn(dsn);
  if (!URL.canParse(normal)) return "postgres://…";
  const { username, host, pathname } = new URL(normal);
  return `postgres://${username === "" ? "" : `${username}@`}${host}${pathname}`;
}

const SHORTEST_HIDDEN = 4;

/** Passwords in an address, as they stand there and as they are. */
export function dsnSecrets(dsn: string): ReadonlySet<string> {
  const secrets = new Set<string>();
  if (URL.canParse(normalDsn(dsn))) {
    const { password, searchParams } = new URL(normalDsn(dsn));
    for (const secret of [password, searchParams.get("password") ?? "", searchParams.get("sslpassword") ?? ""]) {
      secrets.add(secret).add(unescaped(secret));
    }
  }
  secrets.delete("");
  return secrets;
}

/** Takes the address and its secrets out of texts of others. */
export function dsnHider(dsn: string): (text: string) => string {
  const secrets = [dsn, normalDsn(dsn), ...dsnSecrets(dsn)];
  const hidden = secrets.filter((secret) => secret.length >= SHORTEST_HIDDEN).sort((a, b) => b.length - a.length);
  return (text) => hidden.reduce((left, secret) => left.replaceAll(secret, "…"), text);
}
