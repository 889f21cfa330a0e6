import { Group, Text } from "@mantine/core";
import { useState } from "react";

import { useSession } from "../session/session.tsx";
import css from "./shell.module.css";

/** The logo of the service, in the primary colour of the theme. */
export function BrandMark({ size = 24 }: { readonly size?: number }) {
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

/**
 * Shows the company's logo, the name of the service and the company's name. If the partner has a white label, its
 * brand name replaces the name of the service.
 */
export function Brand() {
  const { theme, white_label: whiteLabel, company } = useSession();
  const [isBroken, setBroken] = useState(false);
  const name = (whiteLabel.enabled ? whiteLabel.brand_name : null) ?? "ReviewRelay";
  return (
    <Group gap="xs" wrap="nowrap" className="shrinks">
      {theme.logo_url === null || isBroken ? (
        <BrandMark />
      ) : (
        <img
          className={css.brandLogo}
          src={theme.logo_url}
          alt=""
          referrerPolicy="no-referrer"
          onError={() => setBroken(true)}
        />
      )}
      <Text fw={650} truncate>
        {name}
      </Text>
      {company.name !== name && (
        <Text c="dimmed" size="sm" truncate visibleFrom="sm">
          {company.name}
        </Text>
      )}
    </Group>
  );
}
