import type { QueryClient } from "@tanstack/react-query";

const keyOf = (id: string) => ["webhooks", "fresh-secret", id];

/** Keeps a new secret in memory for the page that shows it; a reload or a sign-out forgets it. */
export function keepSecret(client: QueryClient, id: string, secret: string): void {
  client.setQueryData(keyOf(id), secret);
}

export function freshSecret(client: QueryClient, id: string): string | undefined {
  return client.getQueryData<string>(keyOf(id));
}
