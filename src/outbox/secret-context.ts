/** What a webhook secret is sealed for: moved to another subscription or tenant it does not open (contract 6.6). */
export function webhookSecretContext(partnerId: number, subscriptionId: string): string {
  return `webhook:${partnerId}:${subscriptionId}`;
}
