/** What a provider's sealed secret is bound to, so that a ciphertext moved to another provider does not open. */
export function providerSecretContext(slug: string): string {
  return `provider:${slug}`;
}
