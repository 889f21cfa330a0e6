interface Axis {
  readonly connected: boolean;
}
interface Connection {
  readonly store_id: number;
  readonly store_name: string;
  readonly name: string;
  readonly pull: Axis;
  readonly post: Axis;
}

export interface StoreGroup<C> {
  readonly id: number;
  readonly name: string;
  readonly broken: number;
  readonly connections: readonly C[];
}

export const isBroken = ({ pull, post }: Pick<Connection, "pull" | "post">): boolean =>
  !pull.connected || !post.connected;

/** Groups connections by store; whatever is broken comes first, the rest by name. */
export function byStore<C extends Connection>(connections: readonly C[]): StoreGroup<C>[] {
  const groups = Map.groupBy(connections, (one) => one.store_id);
  return [...groups]
    .map(([id, own]) => ({
      id,
      name: own[0]?.store_name ?? "",
      broken: own.filter(isBroken).length,
      connections: own.toSorted(
        (a, b) => Number(isBroken(b)) - Number(isBroken(a)) || a.name.localeCompare(b.name),
      ),
    }))
    .toSorted(
      (a, b) => Number(b.broken > 0) - Number(a.broken > 0) || a.name.localeCompare(b.name),
    );
}
