// All of the keras module that programs use.
#pragma once

#include "cohort/keras/activations.h"
#include "cohort/keras/callback.h"
#include "cohort/keras/core_layers.h"
#include "cohort/keras/history.h"
#include "cohort/keras/image_layers.h"
#include "cohort/keras/initializers.h"
#include "cohort/keras/layer.h"
#include "cohort/keras/loss.h"
#include "cohort/keras/metric.h"
#include "cohort/keras/model.h"
#include "cohort/keras/normalization_layers.h"
#include "cohort/keras/optimizer.h"
#include "cohort/keras/regularizers.h"
#include "cohort/keras/signal_check.h"
#include "cohort/keras/train_step.h"
