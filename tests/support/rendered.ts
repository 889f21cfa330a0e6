// Reads what deploy/ renders as the containers that a cluster or Docker would start.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../scripts/install/install.ts";
import { program } from "./needs.ts";

export const DEPLOY = join(ROOT, "deploy");
const CHART = join(DEPLOY, "helm/reviewrelay");

// The content of the YAML files has no static type.
// oxlint-disable-next-line typescript/no-explicit-any
export type Yaml = Readonly<Record<string, any>>;

export const read = (path: string) => readFileSync(join(DEPLOY, path), "utf8");
export const yamlOf = (text: string) => (Bun.YAML.parse(text) ?? {}) as Yaml;

export interface Container {
  /** The Deployment, Job or service that it belongs to. */
  readonly pod: string;
  readonly name: string;
  readonly isInit: boolean;
  readonly args: readonly string[];
  /** The settings that the file gives it, without those of the image. */
  readonly env: Readonly<Record<string, string>>;
  /** The folder of each Secret, or the path of each secret file, and the name of that secret. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Writable folders. */
  readonly writable: readonly string[];
  /** The URL path and the port of each probe. */
  readonly probes: readonly { readonly path: string; readonly port: number }[];
}

/** What the Containerfile says about each container. */
export const IMAGE = (() => {
  const containerfile = read("Containerfile");
  const lineOf = (name: string) => new RegExp(`^${name} (.*)$`, "m").exec(containerfile)?.[1] ?? "";
  const assigned = [...lineOf("ENV").matchAll(/(\w+)=(\S*)/g)];
  const words = (text: string): string[] => JSON.parse(text);
  return {
    env: Object.fromEntries(assigned.map(([, name = "", value = ""]) => [name, value])),
    user: lineOf("USER"),
    entrypoint: words(lineOf("ENTRYPOINT")),
    health: words(/ CMD (.*)$/.exec(lineOf("HEALTHCHECK"))?.[1] ?? "[]"),
  };
})();

/** The options of the chart that are off by default. */
export const EVERY_OPTION = [
  ...["podMonitor", "ingress", "api.autoscaling"].map((name) => `${name}.enabled=true`),
  "secret.migrations=reviewrelay-owner",
].flatMap((value) => ["--set", value]);

export function helm(...options: readonly string[]): string {
  const command = [program("helm"), "template", "reviewrelay", CHART, ...options];
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { env: process.env });
  // Helm prints deprecations of our files to its standard error.
  if (exitCode !== 0 || stderr.length > 0) throw new Error(stderr.toString());
  return stdout.toString();
}

export function documentsOf(text: string): Yaml[] {
  return text
    .split(/^---$/m)
    .map(yamlOf)
    .filter((one) => "kind" in one);
}

/** Returns all containers of the Deployments and Jobs, those that run first before the others. */
export function containersOf(documents: readonly Yaml[]): Container[] {
  const configMap = (name: string): Yaml =>
    documents.find((one) => one["kind"] === "ConfigMap" && one["metadata"].name === name)?.["data"];
  return documents.flatMap(({ metadata, spec }) => {
    const pod: Yaml = spec?.template?.spec ?? {};
    const { initContainers = [], containers = [], volumes = [] } = pod;
    const volumeOf = (mount: Yaml): Yaml =>
      volumes.find(({ name }: Yaml) => name === mount["name"]) ?? {};
    return [...initContainers, ...containers].map((one: Yaml): Container => {
      const mounts: Yaml[] = one["volumeMounts"] ?? [];
      const env: Yaml[] = one["env"] ?? [];
      const ports: Yaml[] = one["ports"] ?? [];
      const probes = ["startupProbe", "livenessProbe", "readinessProbe"];
      return {
        pod: metadata.name,
        name: one["name"],
        isInit: initContainers.includes(one),
        args: one["args"],
        env: Object.assign(
          {},
          ...one["envFrom"].map(({ configMapRef }: Yaml) => configMap(configMapRef.name)),
          Object.fromEntries(env.map(({ name, value }) => [name, value])),
        ),
        secrets: Object.fromEntries(
          mounts.flatMap((mount) => {
            const { secret } = volumeOf(mount);
            return secret === undefined ? [] : [[mount["mountPath"], secret.secretName]];
          }),
        ),
        writable: mounts
          .filter((mount) => volumeOf(mount)["emptyDir"])
          .map((mount) => mount["mountPath"]),
        probes: probes.flatMap((name) => {
          const get: Yaml | undefined = one[name]?.httpGet;
          if (get === undefined) return [];
          const port = ports.find((it) => it["name"] === get["port"])?.["containerPort"];
          return [{ path: get["path"], port }];
        }),
      };
    });
  });
}

/** Returns the services of compose.yaml that run our image, with the values of the given variables. */
export function servicesOf(text: string, variables: Readonly<Record<string, string>>): Container[] {
  const { services } = yamlOf(text);
  return Object.entries<Yaml>(services)
    .filter(([, { image: name }]) => String(name).startsWith("reviewrelay:"))
    .map(([name, one]) => ({
      pod: name,
      name,
      isInit: false,
      args: one["command"],
      env: Object.fromEntries(
        Object.entries<string | number>(one["environment"]).map(([key, value]) => [
          key,
          String(value).replace(/\$\{(\w+):([?-])([^}]*)\}/g, (_, variable, kind, rest) => {
            const given = variables[variable] ?? (kind === "-" ? rest : undefined);
            if (given === undefined) throw new Error(`compose.yaml needs ${variable}.`);
            return given;
          }),
        ]),
      ),
      secrets: Object.fromEntries(
        one["secrets"].map((secret: string) => [`/run/secrets/${secret}`, secret]),
      ),
      writable: one["tmpfs"],
      // Those with a health check of the image, which asks the same port.
      probes:
        one["healthcheck"]?.disable === true
          ? []
          : [{ path: "/readyz", port: Number(IMAGE.env["METRICS_PORT"]) }],
    }));
}
