import type { Settings } from "./settings.ts";

/** A bug put in on purpose, to show that the simulation finds it. */
export interface Plant {
  readonly name: string;
  /** A seed that shows it; where the code has changed since, another one near it does. */
  readonly seed: number;
  readonly bug: string;
  /** Puts a function that has the bug in the place of one of the dispatcher or of the simulated stores. */
  readonly grow: () => Promise<void>;
  /** The invariants that may find it: what it breaks, whichever of its consequences comes first. */
  readonly breaks: readonly string[];
}

/*
 * Puts other functions in the place of those of the dispatcher and of the simulated stores, so that a run has a bug on
 * purpose. What is replaced is named by the function itself, so a rename or a move is an error of the type check.
 */

type AnyFunction = (...args: never[]) => unknown;
type Setters = Map<AnyFunction, (by: AnyFunction) => void>;

/** The name under which the modules find the map below. */
const REGISTRY = "reviewrelay.replaceable";
const setters: Setters = new Map();

const REPLACEABLE = /\/(?:dispatcher|tests\/simulation)\/.*\.ts$/;
const EXPORTED_FUNCTION = /^export (?:async )?function (\w+)/gm;

/**
 * Has every module of the dispatcher and of the simulation hand out the means to assign its exported functions anew, for
 * its importers and for itself. Only what is imported after this call does so.
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

/** Changes the settings of all runs, so that a rare bug has the chance to show; `noFaults` are those of a calm run. */
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
