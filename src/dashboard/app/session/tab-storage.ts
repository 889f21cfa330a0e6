/*
 * What outlives a reload is in the storage of this tab alone, which no other tab sees and which ends with it. Where a
 * browser forbids even that, things simply do not outlive a reload.
 */

type Key = "reviewrelay.session" | "reviewrelay.reload" | "reviewrelay.sso" | "reviewrelay.drafts";

export const tabStorage = {
  read(key: Key): string | null {
    try {
      return sessionStorage.getItem(key);
    } catch {
      return null;
    }
  },
  /** Answers whether the value is stored now. */
  write(key: Key, value: unknown): boolean {
    try {
      sessionStorage.setItem(key, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  },
  remove(key: Key): void {
    try {
      sessionStorage.removeItem(key);
    } catch {
      // Without a storage there is nothing to remove.
    }
  },
};
