import { Group, Text } from "@mantine/core";
import { useState } from "react";

import { useSession } from "../session/session.tsx";
import { BrandMark } from "../ui/brand-mark.tsx";

/** Says whose pages these are; a white label speaks in its own name. */
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
          className="brand-logo"
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
