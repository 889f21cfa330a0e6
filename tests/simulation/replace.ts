import type { Settings } from "./settings.ts";

/** A bug that is injected on purpose, to show that the simulation finds it. */
export interface InjectedFault {
  readonly name: string;
  /** A seed that shows the bug. After changes of the code a nearby seed does. */
  readonly seed: number;
  readonly bug: string;
  /** Replaces a function of the dispatcher or of the simulated stores by one with the bug. */
  readonly inject: () => Promise<void>;
  /** The invariants that may detect the bug, depending on the first consequence. */
  readonly breaks: readonly string[];
}

/*
 * Replaces functions of the dispatcher and of the simulated stores, so that a run has a bug on purpose. A replaced
 * function is referenced directly, so a rename or a move is a type error.
 */

type AnyFunction = (...args: never[]) => unknown;
type Setters = Map<AnyFunction, (by: AnyFunction) => void>;

/** The name under which the modules find the map below. */
const REGISTRY = "reviewrelay.replaceable";
const setters: Setters = new Map();

const REPLACEABLE = /\/(?:dispatcher|tests\/simulation)\/.*\.ts$/;
const EXPORTED_FUNCTION = /^export (?:async )?function (\w+)/gm;

/**
 * Makes every module of the dispatcher and of the simulation register a setter for each exported function, for its
 * importers and itself. Affects only modules that are imported after this call.
 */
export function makeReplaceable(): void {
  Reflect.set(globalThis, Symbol.for(REGISTRY), setters);
  Bun.plugin({
    name: "replaceable",
    setup(build) {
      build.onLoad({ filter: REPLACEABLE }, async ({ path }) => {
        const source = await Bun.file(path).text();
        return { contents: source + settersOf(source), loader: "ts" };
      });
    },
  });
}

function settersOf(source: string): string {
  const registry = `globalThis[Symbol.for(${JSON.stringify(REGISTRY)})]`;
  return Array.from(
    source.matchAll(EXPORTED_FUNCTION),
    ([, name]) => `\n${registry}.set(${name}, (by) => { ${name} = by; });`,
  ).join("");
}

export function replaceFunction<F extends AnyFunction>(real: F, by: (real: F) => F): void {
  const set = setters.get(real);
  if (set === undefined) throw new Error(`${real.name} was imported before makeReplaceable().`);
  set(by(real));
}

/** Changes the settings of all runs, so that a rare bug can show; `noFaults` are those of a calm run. */
export async function drawInstead(
  change: (noFaults: Settings["faults"]) => Partial<Settings>,
): Promise<void> {
  const { drawSettings, NO_FAULTS } = await import("./settings.ts");
  replaceFunction(drawSettings, (real) => (random) => ({ ...real(random), ...change(NO_FAULTS) }));
}

export function replaceMethod<T extends object, K extends keyof T>(
  prototype: T,
  name: K,
  by: (real: T[K]) => T[K],
): void {
  prototype[name] = by(prototype[name]);
}
