import type { QueryClient } from "@tanstack/react-query";

const keyOf = (id: string) => ["webhooks", "fresh-secret", id];

/** From the creation to the page that shows it: in memory only, and gone with a reload or a sign-out. */
export function keepSecret(client: QueryClient, id: string, secret: string): void {
  client.setQueryData(keyOf(id), secret);
}

export function freshSecret(client: QueryClient, id: string): string | undefined {
  return client.getQueryData<string>(keyOf(id));
}
