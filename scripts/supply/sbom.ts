// `bun run sbom [file]` writes the packages of bun.lock as a CycloneDX 1.6 document to standard output or a file. The
// document is first validated against the official schema.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Ajv } from "ajv";
import formats from "ajv-formats";

import { namedPackages, readLock, readPackages, type Package } from "./packages.ts";

const ROOT = join(import.meta.dir, "../..");
const SCHEMAS = "node_modules/@cyclonedx/cyclonedx-library/res/schema";
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** Builds a reproducible document: it contains no time, and its serial number is derived from bun.lock. */
export function sbomOf(root: string): object {
  const { name, version, license, patchedDependencies } = JSON.parse(read("package.json"));
  const packages = readPackages(root);
  const own = { type: "application", "bom-ref": `${name}@${version}`, name, version };
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(read("bun.lock"))}`,
    version: 1,
    metadata: { component: { ...own, licenses: [{ expression: license }] } },
    components: packages.map((one) => componentOf(one, patchedDependencies[one.id])),
    dependencies: [
      { ref: own["bom-ref"], dependsOn: namedPackages(readLock(root)).toSorted() },
      ...packages.map(({ id, needs }) => ({ ref: id, dependsOn: needs.toSorted() })),
    ],
  };
}

function componentOf(one: Package, patch: string | undefined): object {
  const [scope, bare] = one.name.startsWith("@") ? one.name.slice(1).split("/") : [];
  const path = scope === undefined ? one.name : `%40${scope}/${bare}`;
  return {
    type: "library",
    "bom-ref": one.id,
    name: one.name,
    version: one.version,
    // Packages that are not shipped are for development, tests or the demo.
    scope: one.isShipped ? "required" : "excluded",
    hashes: [{ alg: "SHA-512", content: hexOf(one.integrity) }],
    ...(one.licence !== undefined && { licenses: [{ expression: one.licence }] }),
    purl: `pkg:npm/${path}@${one.version}`,
    ...(patch !== undefined && {
      pedigree: { patches: [{ type: "unofficial", diff: { text: { content: read(patch) } } }] },
    }),
  };
}

const hexOf = (integrity: string): string =>
  Buffer.from(integrity.replace("sha512-", ""), "base64").toString("hex");

/** Derives a UUID of version 8 from the digest of a text. */
function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
}

const schemaOf = (name: string) => JSON.parse(read(`${SCHEMAS}/${name}`));

/** Validates a document against the official schema. Returns one line per error. */
export function sbomFaults(document: object): string[] {
  const ajv = new Ajv({ strict: false, allErrors: true });
  formats.default(ajv);
  for (const name of ["spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json"])
    ajv.addSchema(schemaOf(name), `http://cyclonedx.org/schema/${name}`);
  // These formats are declared without a check, because the document contains no fields with them.
  ajv.addFormat("idn-email", true).addFormat("iri-reference", true);
  const validate = ajv.compile(schemaOf("bom-1.6.SNAPSHOT.schema.json"));
  validate(document);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
}

if (import.meta.main) {
  const document = sbomOf(ROOT);
  const faults = sbomFaults(document);
  for (const fault of faults) console.error(fault);
  const text = `${JSON.stringify(document, null, 2)}\n`;
  const [file] = process.argv.slice(2);
  if (faults.length > 0) process.exitCode = 1;
  else if (file === undefined) process.stdout.write(text);
  else writeFileSync(file, text);
}
