// `bun run release [--dry-run] [--targets linux-x64,linux-arm64]` builds the files of a release into `dist/release`
// twice. It fails if the two builds differ, or if the executable of this machine does not work. The commit must be
// tagged with the version, and the checkout must have no changes; a dry run does not require this.
// .github/workflows/release.yml builds the image, signs and publishes.
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { ROOT } from "../db/executable.ts";
import { COMMIT, VERSION } from "../src/lib/version.ts";
import { buildTypescriptPackage } from "./packages.ts";
import { sbomFaults, sbomOf } from "./supply/sbom.ts";

const { values } = parseArgs({
  options: {
    "dry-run": { type: "boolean", default: false },
    targets: { type: "string", default: "linux-x64,linux-arm64" },
  },
});
const DIST = join(ROOT, "dist");
const FOLDER = join(DIST, "release");

if (!values["dry-run"]) {
  const tag = run(["git", "describe", "--exact-match", "--tags", "HEAD"]).trim();
  if (tag !== `v${VERSION}`) throw new Error(`The tag ${tag} does not match version ${VERSION}.`);
  if (run(["git", "status", "--porcelain"]) !== "")
    throw new Error("The working tree has uncommitted changes.");
}
// Archives and wheels contain this time, so that their content depends only on the commit.
process.env["SOURCE_DATE_EPOCH"] = run(["git", "show", "-s", "--format=%ct", "HEAD"]).trim();
console.log(`ReviewRelay ${VERSION}, commit ${COMMIT}`);
// Only the first build is tried. The second one must have the same bytes.
const first = await build();
const second = await build("--build-only");
const lines = [...second].map(([name, { digest }]) => `${digest}  ${name}\n`);
await Bun.write(join(FOLDER, "SHA256SUMS"), lines.join(""));
const differing = [...second].filter(([name, { digest }]) => first.get(name)?.digest !== digest);
for (const [name, { bytes, digest }] of second)
  console.log(`${digest}  ${Math.ceil(bytes / 1e3)} kB  ${name}`);
for (const [name] of differing) console.error(`Two builds of ${name} differ.`);
if (differing.length > 0) process.exitCode = 1;
else console.log(`Two builds are equal. ${FOLDER} has the files and SHA256SUMS.`);

interface Built {
  readonly bytes: number;
  readonly digest: string;
}

/** Builds all files into an empty folder. Returns their sizes and digests. */
async function build(...flags: readonly string[]): Promise<Map<string, Built>> {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const target of values.targets.split(",")) {
    const options = ["--target", `bun-${target}`, "--commit", COMMIT, ...flags];
    run([process.execPath, "scripts/executables.ts", ...options]);
    for (const name of ["reviewrelay-server", "reviewrelay"])
      archive(DIST, name, `${name}-${VERSION}-${target}.tar.gz`);
  }
  copyFileSync(join(DIST, "reviewrelay.mjs"), join(FOLDER, "reviewrelay.mjs"));
  archive(join(ROOT, "deploy/helm"), "reviewrelay", `reviewrelay-chart-${VERSION}.tgz`);
  packSdks();
  const sbom = sbomOf(ROOT);
  const faults = sbomFaults(sbom);
  if (faults.length > 0) throw new Error(faults.join("\n"));
  await Bun.write(join(FOLDER, "sbom.cdx.json"), `${JSON.stringify(sbom, null, 2)}\n`);
  const names = readdirSync(FOLDER).toSorted();
  return new Map(
    names.map((name) => {
      const bytes = readFileSync(join(FOLDER, name));
      const digest = createHash("sha256").update(bytes).digest("hex");
      return [name, { bytes: bytes.length, digest }];
    }),
  );
}

/** Packs a file or folder so that the archive contains neither owners nor times of this machine. */
function archive(cwd: string, name: string, target: string): void {
  const date = `--mtime=@${process.env["SOURCE_DATE_EPOCH"]}`;
  const owner = ["--owner=0", "--group=0", "--numeric-owner", "--mode=go-w"];
  run([
    "tar",
    "--sort=name",
    date,
    ...owner,
    "--use-compress-program=gzip -n",
    "-C",
    cwd,
    "-cf",
    join(FOLDER, target),
    name,
  ]);
}

/** Packs the client packages that this commit contains. The packages for PHP and Go are taken from the tag. */
function packSdks(): void {
  const typescript = join(DIST, "sdk-typescript");
  buildTypescriptPackage(typescript);
  run(["npm", "pack", "--silent", "--pack-destination", FOLDER, typescript]);
  // The sources are copied, because the build of a wheel leaves files beside them.
  const python = join(DIST, "sdk-python");
  rmSync(python, { recursive: true, force: true });
  cpSync(join(ROOT, "src/sdk/python"), python, { recursive: true });
  run(["python3", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", FOLDER, python]);
}

function run(command: readonly string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
    cwd: ROOT,
    env: process.env,
  });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
}
