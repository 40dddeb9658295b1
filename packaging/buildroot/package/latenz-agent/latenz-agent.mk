################################################################################
#
# latenz-agent
#
################################################################################

LATENZ_AGENT_VERSION = 0.1.0
LATENZ_AGENT_SOURCE = latenz-$(LATENZ_AGENT_VERSION).tar.gz
LATENZ_AGENT_SITE = $(call qstrip,$(BR2_PACKAGE_LATENZ_AGENT_SITE))
LATENZ_AGENT_LICENSE = Apache-2.0
LATENZ_AGENT_LICENSE_FILES = LICENSE
LATENZ_AGENT_SUPPORTS_IN_SOURCE_BUILD = NO
LATENZ_AGENT_CONF_OPTS = -DCMAKE_BUILD_TYPE=MinSizeRel
LATENZ_AGENT_BUILD_OPTS = --target latenz-agent

define LATENZ_AGENT_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(LATENZ_AGENT_BUILDDIR)/agent/latenz-agent \
		$(TARGET_DIR)/usr/bin/latenz-agent
endef

$(eval $(cmake-package))
