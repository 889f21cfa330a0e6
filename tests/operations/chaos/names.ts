import { isHere } from "../../../scripts/needs.ts";
import { startNameServer } from "../../support/network/name-server.ts";

/** A name server for the receivers that can be silenced. */
export interface ChaosNames {
  /** A command prefix that makes the following command use only this name server. */
  readonly prefix: readonly string[];
  nameOf(address: string): string;
  /** Leaves every question unanswered for this time. */
  silence(ms: number): Promise<void>;
  stop(): void;
}

/** Starts the name server. Returns undefined if processes cannot be given one; receivers are then addressed by IP. */
export async function startNames(addresses: readonly string[]): Promise<ChaosNames | undefined> {
  if (!isHere("mounts")) return undefined;
  let isSilent = false;
  const server = await startNameServer(
    Object.fromEntries(
      addresses.map((address) => [
        nameOf(address),
        () => (isSilent ? "silence" : { addresses: [address] }),
      ]),
    ),
  );
  return {
    prefix: server.prefix,
    nameOf,
    async silence(ms) {
      isSilent = true;
      await Bun.sleep(ms);
      isSilent = false;
    },
    stop: () => server.stop(),
  };
}

function nameOf(address: string): string {
  return `host-${address.replaceAll(".", "-")}.test`;
}
