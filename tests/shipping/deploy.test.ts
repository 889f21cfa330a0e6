// Compares the files in deploy/ with the code, the guide and each other. tests/shipping/executable.test.ts builds the image, and
// tests/shipping/deploy-run.test.ts runs what the others render.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ROOT } from "../../scripts/install/install.ts";
import type { NeedName } from "../../scripts/needs.ts";
import { lacks, program } from "../support/needs.ts";
import {
  type Container,
  containersOf,
  DEPLOY,
  documentsOf,
  EVERY_OPTION,
  helm,
  IMAGE,
  read,
  servicesOf,
  type Yaml,
  yamlOf,
} from "../support/rendered.ts";

describe("an installation for production", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "production-"));
    for (const path of INSTALLED) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
    const install = ["install", "--production", "--frozen-lockfile", "--omit=optional"];
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...install], { cwd: folder });
    if (exitCode !== 0) throw new Error(stderr.toString());
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const run = (command: string) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, ...command.split(" ")], {
      cwd: folder,
      env: { PATH: process.env["PATH"] ?? "" },
    });
    return [exitCode, `${stdout.toString()}${stderr.toString()}`];
  };

  test.each(COMMANDS)("contains everything that %s imports", (command) => {
    const status = command.endsWith("doctor") ? 1 : 78;
    expect(run(command)).toEqual([status, expect.stringContaining("DATABASE_URL is required")]);
  });

  // Installers other than Bun leave the driver unpatched.
  test.each(COMMANDS)("refuses to run %s with an unpatched driver", (command) => {
    const other = join(folder, "db/node_modules/postgres");
    cpSync(join(ROOT, "node_modules/postgres"), other, { recursive: true });
    appendFileSync(join(other, "src/connection.js"), "\n");
    try {
      expect(run(command)).toEqual([78, expect.stringContaining("does not contain our patch")]);
    } finally {
      rmSync(join(folder, "db/node_modules"), { recursive: true });
    }
  });
});

describe("the image", () => {
  const containerfile = read("Containerfile");
  const chart = yamlOf(read("helm/reviewrelay/Chart.yaml"));

  test("sets only known settings", () => {
    expect(unknown(Object.keys(IMAGE.env))).toEqual([]);
  });

  test("has the version of the package", () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(containerfile).toContain(`ARG VERSION=${version}`);
    expect(read("compose.yaml")).toContain(`image: reviewrelay:${version}`);
    expect(chart).toMatchObject({ version, appVersion: version });
  });

  test("uses the Bun version of the package", () => {
    const { engines } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(containerfile).toContain(`oven/bun:${engines.bun.replace(">=", "")}-`);
  });
});

describe("the workflows", () => {
  const folder = join(ROOT, ".github/workflows");
  const workflow = (name: string) => readFileSync(join(folder, name), "utf8");

  test.each(readdirSync(folder))(
    "%s uses actions by commit, and only the job that publishes a release may write",
    (name) => {
      const used = [...workflow(name).matchAll(/uses: (.*)/g)].map(([, action]) => action);
      expect(used).not.toEqual([]);
      for (const action of used)
        expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
      const { permissions, jobs } = yamlOf(workflow(name));
      expect(permissions).toEqual({ contents: "read" });
      const allowed = Object.entries<Yaml>(jobs).filter(([, job]) => job["permissions"]);
      expect(allowed.map(([job]) => job)).toEqual(name === "release.yml" ? ["publish"] : []);
    },
  );

  test.each(["ci.yml", "release.yml"])("%s gives the image its commit", (name) => {
    const [build] = /docker (?:buildx )?build -f(?:\\\n|[^\n])*/.exec(workflow(name)) ?? [];
    expect(build).toContain('--build-arg COMMIT="$GITHUB_SHA"');
  });

  test("of a release refuses base images without a digest", () => {
    const { jobs } = yamlOf(workflow("release.yml"));
    expect(jobs.publish.needs).toBe("test");
    const { run } = jobs.test.steps[0];
    const statusWith = (bun: string, base: string) =>
      Bun.spawnSync(["bash", "-euo", "pipefail", "-c", run], {
        env: { PATH: process.env["PATH"] ?? "", BUN_IMAGE: bun, BASE_IMAGE: base },
      }).exitCode;
    const digest = `sha256:${"0a".repeat(32)}`;
    const good = `oven/bun:1.4.4-slim@${digest}`;
    expect(statusWith(good, `gcr.io/distroless/cc-debian12:latest@${digest}`)).toBe(0);
    for (const image of [
      "",
      "oven/bun:1.4.4-slim",
      `oven/bun@${digest}`,
      `oven/bun:1.4.4-slim@${digest.slice(0, -1)}`,
      `oven/bun:1.4.4-slim@${digest} --x`,
    ]) {
      expect([image, statusWith(image, good)]).toEqual([image, 1]);
      expect([image, statusWith(good, image)]).toEqual([image, 1]);
    }
  });
});

describe("compose.yaml", () => {
  const { services, secrets } = yamlOf(read("compose.yaml"));
  const ours = Object.entries<Yaml>(services).filter(([, { image }]) =>
    String(image).startsWith("reviewrelay:"),
  );

  test.each(ours)(
    "%s runs a command of the executable with known settings and minimal privileges",
    (_name, one) => {
      expect(EXECUTABLE_COMMANDS).toContain(one["command"][0]);
      expect(unknown(Object.keys(one["environment"]))).toEqual([]);
      expect(one).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
      for (const name of one["secrets"]) expect(Object.keys(secrets)).toContain(name);
      for (const name of Object.keys(one["depends_on"]))
        expect(Object.keys(services)).toContain(name);
    },
  );

  test("runs the migrations before everything else", () => {
    for (const name of ["api", "dispatcher"])
      expect(services[name].depends_on.migrate.condition).toBe("service_completed_successfully");
  });
});

describe.skipIf(lacks("helm"))("the objects of the chart with its defaults", () => {
  const render = () => {
    const documents = documentsOf(helm("--no-hooks"));
    const ofKind = (kind: string) => documents.filter((one) => one["kind"] === kind);
    const pods: Yaml[] = ofKind("Deployment").map(({ spec }) => spec.template.spec);
    return { ofKind, pods, settings: ofKind("ConfigMap")[0]?.["data"] };
  };

  test("use known settings", () => {
    expect(unknown(Object.keys(render().settings))).toEqual([]);
  });

  test("run commands of the executable as an unprivileged user on a read-only root, after the migrations", () => {
    const { pods } = render();
    expect(pods.map(({ containers }) => containers[0].args)).toEqual([["api"], ["dispatcher"]]);
    for (const { initContainers, containers, securityContext } of pods) {
      expect(initContainers.map(({ args }: Yaml) => args)).toEqual([["migrate"]]);
      for (const one of [...initContainers, ...containers]) {
        expect(EXECUTABLE_COMMANDS).toContain(one.args[0]);
        const { runAsNonRoot, runAsUser, runAsGroup } = securityContext;
        expect([runAsNonRoot, `${runAsUser}:${runAsGroup}`]).toEqual([true, IMAGE.user]);
        expect(one.securityContext).toMatchObject({
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
        });
      }
    }
  });

  test("trust no network, and let nothing in or out that no policy names", () => {
    const { ofKind, settings } = render();
    expect(settings.TRUSTED_PROXIES).toBe("");
    const policies = ofKind("NetworkPolicy");
    expect(policies[0]?.["spec"]).toMatchObject({
      podSelector: { matchLabels: { app: "reviewrelay" } },
      policyTypes: ["Ingress", "Egress"],
    });
    for (const one of policies)
      for (const { from } of one["spec"].ingress) expect(from.length).toBeGreaterThan(0);
    const kept = policies[0]?.["spec"].egress
      .at(-1)
      .to.flatMap(({ ipBlock }: { ipBlock: { except: string[] } }) => ipBlock.except);
    // 169.254.0.0/16 has the metadata service of most clouds.
    for (const inside of [
      "10",
      "100.64",
      "127",
      "172.16",
      "192.168",
      "169.254",
      "::1",
      "fc00",
      "fe80",
    ])
      expect([inside, kept.some((range: string) => range.startsWith(inside))]).toEqual([
        inside,
        true,
      ]);
  });

  test("probe existing health endpoints and leave time to drain", () => {
    const { pods, settings } = render();
    expect(pods).toHaveLength(2);
    for (const { containers, terminationGracePeriodSeconds } of pods) {
      expect(containers[0].readinessProbe.httpGet).toEqual({ path: "/readyz", port: "operations" });
      expect(containers[0].ports).toContainEqual({ name: "operations", containerPort: 9464 });
      expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(
        Number(settings.DRAIN_DELAY_MS) + 8_000,
      );
    }
  });

  test("name the jobs of the metrics as the alert rules do", () => {
    const monitors = ["--set", "podMonitor.enabled=true", "--show-only", "templates/monitors.yaml"];
    const jobs = documentsOf(helm(...monitors)).flatMap((one) =>
      one["spec"].podMetricsEndpoints[0].relabelings.map(({ replacement }: Yaml) => replacement),
    );
    const named = [...read("prometheus/rules.yaml").matchAll(/job="([\w-]+)"/g)];
    expect(jobs.toSorted()).toEqual([...new Set(named.map(([, job]) => job))].toSorted());
  });
});

const inCluster = (text: string) => containersOf(documentsOf(text));

describe.each<[string, NeedName[], () => Container[]]>([
  ["compose.yaml", [], () => servicesOf(read("compose.yaml"), { SERVER_ROOT: "", MAIL_FROM: "" })],
  ["the chart", ["helm"], () => inCluster(helm())],
  ["the chart with every option", ["helm"], () => inCluster(helm(...EVERY_OPTION))],
])("%s", (_, needs, containers) => {
  test.skipIf(lacks(...needs))("gives each container the settings that the guide writes", () => {
    const [, written = ""] = /^cat > "\$PRIVATE\/env" <<EOF\n(.*?)^EOF/ms.exec(GUIDE) ?? [];
    // The image says where a container listens.
    const needed = [...written.matchAll(/^(\w+?)(?:_FILE)?=/gm)]
      .map(([, name = ""]) => name)
      .filter((name) => !(name.endsWith("PORT") && name in IMAGE.env));
    expect(needed).toContain("DATABASE_URL");
    for (const { pod, name, env } of containers()) {
      const lacking = needed.filter((one) => !(one in env) && !(`${one}_FILE` in env));
      expect([pod, name, lacking]).toEqual([pod, name, []]);
    }
  });
});

test.skipIf(lacks("helm"))(
  "only dispatchers, their init container and the setup get the address of the owner",
  () => {
    const documents = documentsOf(helm(...EVERY_OPTION));
    const named = containersOf(documents).flatMap(({ pod, name, env }) =>
      "MAINTENANCE_DATABASE_URL_FILE" in env ? [`${pod}/${name}`] : [],
    );
    expect(named).toEqual(["dispatcher/migrate", "dispatcher/dispatcher", "setup/setup"]);
    const isOfOthers = ({ kind, metadata }: Yaml) =>
      kind !== "Job" && !(kind === "Deployment" && metadata.name === "dispatcher");
    expect(JSON.stringify(documents.filter(isOfOthers))).not.toMatch(
      /reviewrelay-owner|MAINTENANCE/,
    );
    for (const value of [
      "secret.settings={DATABASE_URL,MAINTENANCE_DATABASE_URL}",
      "settings.MAINTENANCE_DATABASE_URL=postgres://x",
    ])
      expect(() => helm("--set", value)).toThrow("name its Secret in secret.migrations");
  },
);

test("every value of the chart is used in a template, or is a part of one that is", () => {
  const folder = join(DEPLOY, "helm/reviewrelay/templates");
  const templates = readdirSync(folder).map((name) => read(`helm/reviewrelay/templates/${name}`));
  const values = yamlOf(read("helm/reviewrelay/values.yaml"));
  for (const name of Object.keys(values))
    expect([name, templates.join("\n").match(new RegExp(`Values\\.${name}\\b|"${name}"`))]).toEqual(
      [name, expect.anything()],
    );
});

test.each(["reviewrelay-api@.service", "reviewrelay-dispatcher.service"])(
  "%s starts an existing file, and is not restarted with wrong settings",
  (name) => {
    const unit = read(`systemd/${name}`);
    const [, command = ""] = /^ExecStart=.*\/usr\/local\/bin\/(.*)$/m.exec(unit) ?? [];
    // The unit of an API derives the port from its name.
    const [, setting = "METRICS_PORT=9464"] = /^Environment=(.*)$/m.exec(unit) ?? [];
    expect(GUIDE).toContain(`env $TRY ${setting} ${command} >`);
    const [, script = ""] = /^ExecStart=.* (\S+\.ts) /m.exec(unit) ?? [];
    expect(existsSync(join(ROOT, script))).toBe(true);
    expect(unit).toContain("RestartPreventExitStatus=78");
    const [, unset] = /^UnsetEnvironment=(.*)$/m.exec(unit) ?? [];
    const ofOwner = "MAINTENANCE_DATABASE_URL MAINTENANCE_DATABASE_URL_FILE";
    expect(unset).toBe(name.startsWith("reviewrelay-api") ? ofOwner : undefined);
    // The guide must install everything at the paths that the unit names.
    const places =
      /^(?:(?:User|WorkingDirectory|EnvironmentFile)=|ExecStart=(?:\/usr\/bin\/env (?:\w+=\S+ )+)?)(\S+)/gm;
    const named = [...unit.matchAll(places)].map(([, place = ""]) => place);
    expect(named).toHaveLength(4);
    for (const place of named)
      expect(GUIDE).toMatch(new RegExp(`^sudo (?:useradd|cp|install) .*${place}$`, "m"));
    expect(GUIDE).toMatch(
      new RegExp(`^sudo systemctl enable .*${name.replace(".service", "")}`, "m"),
    );
  },
);

test.skipIf(lacks("systemd"))("the units are rated below 3.0", () => {
  for (const name of ["reviewrelay-api@.service", "reviewrelay-dispatcher.service"]) {
    const { stdout } = Bun.spawnSync([
      program("systemd", "systemd-analyze"),
      "security",
      "--offline=true",
      "--no-pager",
      join(DEPLOY, "systemd", name),
    ]);
    const [, rating] = /Overall exposure level for \S+: ([\d.]+)/.exec(stdout.toString()) ?? [];
    expect(Number(rating)).toBeLessThan(3);
  }
});

test("both files of Caddy have the same options and pass requests on in the same way", () => {
  const shared = /^\{$[\s\S]*?^\}$|^\treverse_proxy \{\$API[\s\S]*?^\t\}$/gm;
  const [own, platform] = ["Caddyfile", "Caddyfile.platform"].map((name) => [
    ...(read(name).match(shared) ?? []),
  ]);
  expect(own).toHaveLength(2);
  expect(platform).toEqual(own);
});

const GUIDE = readFileSync(join(ROOT, "docs/operations/production.md"), "utf8");

/** The parts of a checkout that an installation needs. */
const INSTALLED = ["package.json", "bun.lock", "bunfig.toml", "tsconfig.json"].concat([
  "db",
  "dispatcher",
  "scripts",
  "src",
]);

const COMMANDS = ["src/main.ts", "dispatcher/main.ts"].concat(
  ["migrate", "setup", "keys", "doctor"].map((name) => `src/operate/main.ts ${name}`),
);

const EXECUTABLE_COMMANDS = [
  ...readFileSync(join(ROOT, "src/operate/main.ts"), "utf8").matchAll(/^  (\w+): \{/gm),
].map(([, name]) => name);

const KNOWN = new Set(
  [
    ...readFileSync(join(ROOT, "docs/operations/settings.md"), "utf8").matchAll(/^\|(.*?)\|/gm),
  ].flatMap(([, names = ""]) =>
    [...names.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name]) => name),
  ),
);

const unknown = (names: readonly string[]) =>
  names.filter((name) => !KNOWN.has(name.replace(/_FILE$/, "")) && !KNOWN.has(name));
