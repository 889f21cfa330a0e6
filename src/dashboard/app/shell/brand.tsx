import { Group, Text } from "@mantine/core";
import { useState } from "react";

import { useBrand, useSession } from "../session/session.tsx";
import css from "./shell.module.css";

/** The logo of the service, in the primary colour of the theme. */
function BrandMark({ size = 24 }: { readonly size?: number }) {
  return (
    <svg
      style={{ flex: "none" }}
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

/** Shows the logo of a brand, or the mark of the service if there is no logo or it cannot be loaded. */
export function BrandLogo({
  logoUrl,
  size,
}: {
  readonly logoUrl: string | null;
  readonly size?: number;
}) {
  const [isBroken, setBroken] = useState(false);
  if (logoUrl === null || isBroken) return <BrandMark {...(size !== undefined && { size })} />;
  return (
    <img
      className={css.brandLogo}
      src={logoUrl}
      alt=""
      referrerPolicy="no-referrer"
      onError={() => setBroken(true)}
    />
  );
}

/**
 * Shows the company's logo, the name of the service and the company's name. If the partner has a white label, its
 * brand name replaces the name of the service.
 */
export function Brand() {
  const { company } = useSession();
  const brand = useBrand();
  return (
    <Group gap="xs" wrap="nowrap" className="shrinks">
      <BrandLogo logoUrl={brand?.logoUrl ?? null} />
      <Text fw={650} truncate>
        {brand?.name}
      </Text>
      {company.name !== brand?.name && (
        <Text c="dimmed" size="sm" truncate visibleFrom="sm">
          {company.name}
        </Text>
      )}
    </Group>
  );
}
