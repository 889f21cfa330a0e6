import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

const PEM = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * Splits a PEM file into its certificates. Throws with a reason if it is unreadable, empty or has an invalid
 * certificate.
 */
export function readCertificates(path: string): string[] {
  const certificates = readText(path).match(PEM) ?? [];
  if (certificates.length === 0) throw new Error("names a file without a certificate in PEM form");
  const bad = certificates.findIndex((pem) => !isCertificate(pem));
  if (bad >= 0)
    throw new Error(
      `names a file of which certificate ${bad + 1} of ${certificates.length} cannot be read`,
    );
  return certificates;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new Error(`names a file that cannot be read (${code})`, { cause: error });
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
