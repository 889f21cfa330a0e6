import { makeReplaceable, type Plant } from "./replace.ts";
import { PLANTS_IN_DISPATCHER } from "./plants-in-dispatcher.ts";
import { PLANTS_IN_LEASES } from "./plants-in-leases.ts";
import { PLANTS_IN_LOG, PLANTS_IN_STORES } from "./plants-in-stores.ts";

export const PLANTS: readonly Plant[] = [
  ...PLANTS_IN_STORES,
  ...PLANTS_IN_LEASES,
  ...PLANTS_IN_LOG,
  ...PLANTS_IN_DISPATCHER,
];

export function findPlant(name: string): Plant {
  const plant = PLANTS.find((one) => one.name === name);
  if (plant !== undefined) return plant;
  const names = PLANTS.map((one) => one.name).join(", ");
  throw new Error(`There is no plant ${name}, but ${names}.`);
}

/** Injects the bug into this process. Call it before any module of the dispatcher is imported. */
export async function grow(plant: Plant): Promise<void> {
  makeReplaceable();
  await plant.grow();
}
