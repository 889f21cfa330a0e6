import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** The user of the image (deploy/Containerfile). */
const USER = 10_001;

/**
 * A folder that processes see as `/`, in which they run as the image's user. By default it has what the image's base has:
 * libraries, certificates and `/tmp`, and neither a shell nor another program. `/proc`, `/dev` and the network are those
 * of the machine. Only root on Linux can use it.
 */
export class EmptyRoot {
  readonly folder: string;

  constructor(folder = copyOfBase()) {
    this.folder = folder;
  }

  /** Copies a file of the machine. */
  copy(from: string, to = from): void {
    cpSync(from, join(this.folder, to), { dereference: true });
  }

  /** Writes files that only the image's user can read, such as mounted secrets, by their absolute paths. */
  write(files: Readonly<Record<string, string | Uint8Array>>): void {
    for (const [path, content] of Object.entries(files)) {
      const file = join(this.folder, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content, { mode: 0o400 });
      chownSync(file, USER, USER);
    }
  }

  /**
   * Returns the command that runs a program of this root; arguments may follow it. Each of its parts becomes the next one,
   * so that signals reach the program. The mounts are visible to the program alone, and end with it.
   */
  program(path: string): readonly string[] {
    const mounts = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev"';
    const become = `exec chroot --userspec=${USER}:${USER} "$0" "$@"`;
    const shell = ["/bin/sh", "-c", `${mounts} && ${become}`, this.folder, path];
    return ["/usr/bin/unshare", "--mount", ...shell];
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

/** The libraries of the image's base, as `ldconfig -p` lists them. */
const LIBRARY =
  /^\s+((?:ld-linux[\w-]*|lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so\.\d+) .* => (\S+)$/gm;
/** Other files of the image's base and of every container. */
const FILES = ["ssl/certs/ca-certificates.crt", "nsswitch.conf", "hosts", "resolv.conf"];

function copyOfBase(): string {
  const folder = mkdtempSync(join(tmpdir(), "empty-root-"));
  chmodSync(folder, 0o755);
  const root = new EmptyRoot(folder);
  for (const path of ["dev", "proc", "tmp", "usr/lib"])
    mkdirSync(join(folder, path), { recursive: true });
  chmodSync(join(folder, "tmp"), 0o1777);
  for (const link of ["lib", "lib64"]) symlinkSync("usr/lib", join(folder, link));
  const { stdout } = Bun.spawnSync(["/sbin/ldconfig", "-p"]);
  for (const [, name = "", path = ""] of stdout.toString().matchAll(LIBRARY))
    root.copy(path, `/usr/lib/${name}`);
  for (const name of FILES) root.copy(`/etc/${name}`);
  writeFileSync(join(folder, "etc/passwd"), "root:x:0:0:root:/root:/sbin/nologin\n");
  return folder;
}
