import { isSigned } from "../docs/verify/verify.ts";

export type Verdict = "valid" | "invalid" | "missing";

/** During a grace period a delivery carries two signatures, and either may fit. */
export function verdictOf(
  secret: string,
  body: Uint8Array | string,
  signatures: readonly (string | undefined)[],
): Verdict {
  const given = signatures.filter((one) => one !== undefined);
  if (given.length === 0) return "missing";
  return given.some((one) => isSigned(secret, body, one)) ? "valid" : "invalid";
}

/** The signatures among the headers of a delivery, in whatever case they are written. */
export function signaturesOf(
  headers: Readonly<Record<string, string | string[]>>,
): (string | undefined)[] {
  const wanted = ["x-svc-signature", "x-svc-signature-previous"];
  return Object.entries(headers).flatMap(([name, value]) =>
    wanted.includes(name.toLowerCase()) ? value : [],
  );
}
