import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { copyFileSync, linkSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { program } from "../needs.ts";
import { until } from "../network/receiver.ts";
import { type Container, IMAGE } from "../rendered.ts";
import { EmptyRoot } from "./empty-root.ts";

/** What a container gets from outside of its file. */
export interface Given {
  /** The folder or the file of each Secret. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Runs containers as a node does: each pod has a network of its own, so that every process listens at the address and the port
 * of its file; each container has a read-only root with its Secrets, and the user of the image. The stores that run outside of
 * pods listen at `gateway`. Only root on Linux can use it.
 */
export class Pods {
  readonly gateway: string;
  readonly #network = `10.78.${Math.floor(Math.random() * 256)}`;
  readonly #id = crypto.randomUUID().slice(0, 6);
  readonly #bridge = `pods-${this.#id}`;
  readonly #names: string[] = [];
  readonly #running = new Set<ChildProcess>();
  readonly #folder = mkdtempSync(join(tmpdir(), "pods-"));
  readonly #executable = join(this.#folder, "executable");
  readonly #roots: EmptyRoot[] = [];

  constructor(executable: string) {
    copyFileSync(executable, this.#executable);
    this.gateway = `${this.#network}.1`;
    succeed(["ip", "link", "add", this.#bridge, "type", "bridge"]);
    succeed(["ip", "address", "add", `${this.gateway}/24`, "dev", this.#bridge]);
    succeed(["ip", "link", "set", this.#bridge, "up"]);
  }

  /** Returns the address of a pod, which it gets when it is first named. */
  addressOf(pod: string): string {
    if (!this.#names.includes(pod)) this.#add(pod);
    return `${this.#network}.${this.#names.indexOf(pod) + 2}`;
  }

  #add(pod: string): void {
    this.#names.push(pod);
    const link = `pod${this.#names.length}-${this.#id}`;
    const name = `${this.#bridge}-${pod}`;
    succeed(["ip", "netns", "add", name]);
    succeed(["ip", "link", "add", link, "type", "veth", "peer", "eth0", "netns", name]);
    succeed(["ip", "link", "set", link, "master", this.#bridge, "up"]);
    const within = ["ip", "-netns", name];
    succeed([...within, "address", "add", `${this.addressOf(pod)}/24`, "dev", "eth0"]);
    for (const device of ["lo", "eth0"]) succeed([...within, "link", "set", device, "up"]);
  }

  /** Runs a command to its end, by default that of the container. */
  async run(container: Container, given: Given, command = commandOf(container)) {
    const child = this.#spawn(container, given, command);
    const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return { status, ...child.said };
  }

  /** Starts the command of a container and waits until each of its probes succeeds. */
  async start(container: Container, given: Given): Promise<void> {
    const child = this.#spawn(container, given, commandOf(container));
    const { pod, probes } = container;
    const isOk = async (url: string) => {
      if (child.exitCode !== null) throw new Error(`${pod} has ended.`);
      const answer = await fetch(url).catch(() => undefined);
      // A process without Redis is ready, and degraded.
      return answer?.status === 200 && !(await answer.text()).includes("degraded");
    };
    try {
      for (const { path, port } of probes) {
        const url = `http://${this.addressOf(pod)}:${port}${path}`;
        await until(`${url} of ${pod}`, () => isOk(url));
      }
    } catch (cause) {
      throw new Error(`${pod} does not start: ${child.said.out}${child.said.err}`, { cause });
    }
  }

  #spawn({ pod, env, secrets, writable }: Container, given: Given, command: readonly string[]) {
    const root = new EmptyRoot();
    this.#roots.push(root);
    linkSync(this.#executable, join(root.folder, IMAGE.entrypoint[0] ?? ""));
    const hosts = [`${this.gateway} postgres`, `${this.addressOf("redis")} redis`];
    writeFileSync(join(root.folder, "etc/hosts"), `127.0.0.1 localhost\n${hosts.join("\n")}\n`);
    // The name servers of the machine are in another network.
    writeFileSync(join(root.folder, "etc/resolv.conf"), "");
    for (const path of writable) mkdirSync(join(root.folder, path), { recursive: true });
    for (const [path, secret] of Object.entries(secrets)) {
      const source = given.secrets[secret];
      if (source === undefined) throw new Error(`There is no Secret ${secret}.`);
      mkdirSync(join(root.folder, dirname(path)), { recursive: true });
      succeed(["cp", "-a", source, join(root.folder, path)]);
    }
    const [path = "", ...args] = command;
    const entering = [...readOnly(root.folder, writable), ...root.program(path)];
    return this.spawn(pod, [...entering, ...args], { ...IMAGE.env, ...env, ...given.env });
  }

  /** Starts a program in the network of a pod. */
  spawn(pod: string, command: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.addressOf(pod);
    const inPod = ["netns", "exec", `${this.#bridge}-${pod}`, ...command];
    const child = spawn(program("namespaces", "ip"), inPod, {
      env: { PATH: PATH_OF_RUNTIMES, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#running.add(child);
    const said = { out: "", err: "" };
    child.stdout.on("data", (chunk: Buffer) => (said.out += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (said.err += chunk.toString()));
    return Object.assign(child, { said });
  }

  /** Ends all processes of the pods. */
  async stop(): Promise<void> {
    for (const child of this.#running) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
    this.#running.clear();
  }

  async remove(): Promise<void> {
    await this.stop();
    for (const pod of this.#names) succeed(["ip", "netns", "delete", `${this.#bridge}-${pod}`]);
    succeed(["ip", "link", "delete", this.#bridge]);
    for (const root of this.#roots) root.remove();
    rmSync(this.#folder, { recursive: true });
  }
}

/** Container runtimes set it where the image does not. */
const PATH_OF_RUNTIMES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const commandOf = ({ args }: Container): readonly string[] => [...IMAGE.entrypoint, ...args];

/** Returns the command that runs another one where a folder is read-only except for its `writable` folders. */
function readOnly(folder: string, writable: readonly string[]): readonly string[] {
  const bind = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"';
  const mounts = writable.map((path) => `mount -t tmpfs tmpfs "$0${path}"`);
  return ["unshare", "--mount", "sh", "-c", [bind, ...mounts, 'exec "$@"'].join(" && "), folder];
}

function succeed(command: readonly string[]): void {
  const [name = "", ...args] = command;
  const { status, stdout, stderr } = spawnSync(name, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${stdout}${stderr}`);
}
