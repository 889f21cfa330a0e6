import { makeReplaceable, type InjectedFault } from "./replace.ts";
import { FAULTS_IN_COMMITS } from "./faults-in-commits.ts";
import { FAULTS_IN_DISPATCHER } from "./faults-in-dispatcher.ts";
import { FAULTS_IN_LEASES } from "./faults-in-leases.ts";
import { FAULTS_IN_NUMBERS } from "./faults-in-numbers.ts";
import { FAULTS_IN_LOG, FAULTS_IN_STORES } from "./faults-in-stores.ts";

export const INJECTED_FAULTS: readonly InjectedFault[] = [
  ...FAULTS_IN_STORES,
  ...FAULTS_IN_LEASES,
  ...FAULTS_IN_LOG,
  ...FAULTS_IN_DISPATCHER,
  ...FAULTS_IN_COMMITS,
  ...FAULTS_IN_NUMBERS,
];

export function findInjectedFault(name: string): InjectedFault {
  const injected = INJECTED_FAULTS.find((one) => one.name === name);
  if (injected !== undefined) return injected;
  const names = INJECTED_FAULTS.map((one) => one.name).join(", ");
  throw new Error(`There is no injected fault ${name}, only ${names}.`);
}

/** Injects the bug into this process. Call it before any module of the dispatcher is imported. */
export async function inject(injected: InjectedFault): Promise<void> {
  makeReplaceable();
  await injected.inject();
}
