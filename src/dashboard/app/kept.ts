/*
 * What outlives a reload: in the storage of this tab alone, which no other tab sees and which ends with it. Where a
 * browser forbids even that, things simply do not outlive a reload.
 */

type Key = "reviewrelay.session" | "reviewrelay.sso";

export const kept = {
  read(key: Key): string | null {
    try {
      return sessionStorage.getItem(key);
    } catch {
      return null;
    }
  },
  /** Whether it is kept now. */
  write(key: Key, value: unknown): boolean {
    try {
      sessionStorage.setItem(key, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  },
  forget(key: Key): void {
    try {
      sessionStorage.removeItem(key);
    } catch {
      // Then there is nothing.
    }
  },
};
