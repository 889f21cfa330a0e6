/** Memoizes `make`. When `limit` values are cached, all of them are dropped and computed again on their next use. */
export function memoize<K, V>(
  make: (key: K) => V,
  limit = Number.POSITIVE_INFINITY,
): (key: K) => V {
  const made = new Map<K, V>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    if (made.size >= limit) made.clear();
    const value = make(key);
    made.set(key, value);
    return value;
  };
}
