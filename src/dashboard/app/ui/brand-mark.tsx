/** The sign of the service, in the colour of whoever is signed in. */
export function BrandMark({ size = 24 }: { readonly size?: number }) {
  return (
    <svg
      className="brand-mark"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      aria-hidden
      focusable={false}
    >
      <rect width="24" height="24" rx="7" fill="var(--mantine-primary-color-filled)" />
      <path
        d="M6 8h5m-5 8h5m0-8 6 4-6 4"
        fill="none"
        stroke="var(--mantine-primary-color-contrast)"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
