import { resolverFault, startNameServer } from "./name-server.ts";

/** A name server that knows the receivers and can fall silent. */
export interface ChaosNames {
  /** A command that runs another one, which asks this name server alone. */
  readonly prefix: readonly string[];
  nameOf(address: string): string;
  /** Leaves every question without an answer for so long. */
  silence(ms: number): Promise<void>;
  stop(): void;
}

/** Starts the name server. Undefined where no process can be given one, so that receivers are called by address. */
export async function startNames(addresses: readonly string[]): Promise<ChaosNames | undefined> {
  if (resolverFault() !== undefined) return undefined;
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
