// Part of `bun run check`: `bun run licenses` lists each installed package with its licence. It fails if a licence is
// not listed below.
import { join } from "node:path";

import spdxSatisfies from "spdx-satisfies";

import { readPackages, type Package } from "./packages.ts";

/**
 * Licences of shipped packages. They require only attribution from a distributor. MPL-2.0 also requires that changes of
 * its files are published, but no files are changed here.
 */
const SHIPPED = ["MIT", "MIT-0", "ISC", "0BSD", "BSD-2-Clause", "BSD-3-Clause"].concat(
  "Apache-2.0",
  "Unlicense",
  "MPL-2.0",
);
/** Licences of development packages, which are not distributed. */
const DEVELOPMENT = SHIPPED.concat("BlueOak-1.0.0", "CC0-1.0", "CC-BY-3.0", "CC-BY-4.0", "PSF-2.0");

/** Returns the reason why the licence is not allowed; undefined if it is. */
export function licenceFault({ licence, isShipped }: Package): string | undefined {
  if (licence === undefined) return undefined;
  const allowed = isShipped ? SHIPPED : DEVELOPMENT;
  // Some packages declare only the BSD family, and both of its members are allowed.
  const expression = licence.replaceAll(/\bBSD\b(?!-)/g, "BSD-3-Clause");
  const place = isShipped ? "what is installed" : "development";
  try {
    if (spdxSatisfies(expression, allowed)) return undefined;
  } catch {
    return `"${licence}" is no SPDX expression`;
  }
  return `${licence} is not allowed in ${place}`;
}

if (import.meta.main) {
  const packages = readPackages(join(import.meta.dir, "../.."));
  const installed = packages.filter(({ licence }) => licence !== undefined);
  for (const { id, licence, isShipped } of installed)
    console.log(`${isShipped ? "shipped    " : "development"}  ${licence}  ${id}`);
  const faults = packages.flatMap((one) => {
    const fault = licenceFault(one);
    return fault === undefined ? [] : [`${one.id}: ${fault}.`];
  });
  for (const fault of faults) console.log(fault);
  const elsewhere = packages.length - installed.length;
  console.log(
    `${installed.length} packages, ${faults.length} with a licence that is not allowed; ${elsewhere} for other platforms are not installed here.`,
  );
  process.exitCode = faults.length === 0 && installed.length > 0 ? 0 : 1;
}
