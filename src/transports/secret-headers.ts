/** Which of a source's own headers are secrets, and what of them an echo may hold. */

const SECRET_NAME = /key|auth|token|secret|cookie|pass|cred|sign|session/i;
/** One long word of letters and digits is a credential until somebody says otherwise; a title or an address is not. */
const KEY_LIKE = /^(?=.*\d)[A-Za-z0-9+/_=.~-]{16,}$/;

const SCHEME = /^(?:Bearer|Basic|Token|ApiKey)\s{1,8}/i;

export function isSecretHeader(name: string, value: string): boolean {
  return SECRET_NAME.test(name) || SCHEME.test(value) || KEY_LIKE.test(value.trim());
}

/** The value, what stands behind its scheme, the password in a Basic one, and each cookie's value. */
export function secretsInHeader(value: string): string[] {
  const bare = value.replace(SCHEME, "");
  const secrets = [value, bare];
  if (/^Basic\s/i.test(value)) {
    const decoded = Buffer.from(bare, "base64").toString("utf8");
    secrets.push(decoded, decoded.slice(decoded.indexOf(":") + 1));
  }
  for (const part of value.split(";")) {
    const equals = part.indexOf("=");
    if (equals > 0 && value.length > 16) secrets.push(part.slice(equals + 1).trim());
  }
  return secrets.filter((secret) => secret.length >= 8 || secret === value || secret === bare);
}
